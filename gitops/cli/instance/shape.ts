/** What zod makes of the schemas of answers: a part of JSON Schema (2020-12). */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  /** The shape of a record's members; `false` has no meaning here, because unknown members are dropped. */
  readonly additionalProperties?: Shape | boolean;
  readonly default?: unknown;
}

/** The value doesn't have the shape. */
export class Mismatch extends Error {
  override name = 'Mismatch';
}

/** The value without unknown members, and with the defaults of missing ones. Throws `Mismatch`. */
export function convert(shape: Shape, value: unknown): unknown {
  if (shape.anyOf !== undefined) return convertFirst(shape.anyOf, value);
  if (shape.type !== undefined && ![shape.type].flat().includes(typeOf(value))) throw new Mismatch();
  if ('const' in shape && shape.const !== value) throw new Mismatch();
  if (shape.enum !== undefined && !shape.enum.includes(value)) throw new Mismatch();
  if (typeof value === 'string' && !new RegExp(shape.pattern ?? '', 'u').test(value)) throw new Mismatch();
  const { items } = shape;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => convert(items, item));
  return isRecord(value) ? convertRecord(shape, value) : value;
}

function convertFirst(shapes: readonly Shape[], value: unknown): unknown {
  for (const shape of shapes) {
    try {
      return convert(shape, value);
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
    }
  }
  throw new Mismatch();
}

function convertRecord(shape: Shape, record: Readonly<Record<string, unknown>>): unknown {
  const { properties = {}, required = [], additionalProperties: other } = shape;
  if (typeof other === 'object') {
    return Object.fromEntries(Object.entries(record).map(([key, member]) => [key, convert(other, member)]));
  }
  const converted: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(properties)) {
    if (Object.hasOwn(record, key)) converted[key] = convert(member, record[key]);
    else if (member.default !== undefined) converted[key] = member.default;
    else if (required.includes(key)) throw new Mismatch();
  }
  return converted;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
