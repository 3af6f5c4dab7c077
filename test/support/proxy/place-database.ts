import { writeFile } from 'node:fs/promises';

/** The place of an address, as far as the proxy reads it from the database. */
interface PlaceOf {
  readonly country: string;
  readonly region?: string;
}

/** The octets between the tree and the data section. A pointer to data counts them, too. */
const SEPARATOR = Buffer.alloc(16);
/** Type numbers of the format; those from 8 on are written as an extended type. */
const TYPES = { text: 2, uint16: 5, uint32: 6, map: 7, uint64: 9, array: 11 } as const;

/**
 * Writes a MaxMind DB file (format 2.0) with the places of single IPv4 addresses. A place may have no region, as in
 * MaxMind's free databases of countries.
 */
export async function writePlaces(path: string, places: Readonly<Record<string, PlaceOf>>): Promise<void> {
  const data: Buffer[] = [];
  /** A node's two records: another node, an offset in the data section, or nothing. */
  const nodes: ({ node: number } | { offset: number } | null)[][] = [[null, null]];
  let octets = 0;
  for (const [address, place] of Object.entries(places)) {
    const encoded = encode({
      country: { iso_code: place.country },
      ...(place.region === undefined ? {} : { subdivisions: [{ iso_code: place.region }] }),
    });
    const bits = address
      .split('.')
      .flatMap((part) => [...Number(part).toString(2).padStart(8, '0')].map(Number));
    let at = 0;
    for (const [depth, bit] of bits.entries()) {
      const records = nodes[at] ?? [];
      if (depth === bits.length - 1) {
        records[bit] = { offset: octets };
        break;
      }
      let next = records[bit] ?? null;
      if (next === null || !('node' in next)) {
        next = { node: nodes.push([null, null]) - 1 };
        records[bit] = next;
      }
      at = next.node;
    }
    data.push(encoded);
    octets += encoded.length;
  }
  const tree = Buffer.alloc(nodes.length * 6);
  nodes.forEach((records, index) => {
    records.forEach((record, side) => {
      const empty = nodes.length;
      const value =
        record === null ? empty : 'node' in record ? record.node : empty + SEPARATOR.length + record.offset;
      tree.writeUIntBE(value, index * 6 + side * 3, 3);
    });
  });
  const metadata = encode({
    binary_format_major_version: sized('uint16', 2),
    binary_format_minor_version: sized('uint16', 0),
    build_epoch: sized('uint64', 1_767_225_600),
    database_type: 'Tagyard-Test-City',
    description: { en: 'Places for tests' },
    ip_version: sized('uint16', 4),
    languages: ['en'],
    node_count: nodes.length,
    record_size: sized('uint16', 24),
  });
  const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
  await writeFile(path, Buffer.concat([tree, SEPARATOR, ...data, marker, metadata]));
}

/** A number with its type: the format has several widths, and the metadata must use the right ones. */
interface Sized {
  readonly type: 'uint16' | 'uint64';
  readonly value: number;
}
const sized = (type: Sized['type'], value: number): Sized => ({ type, value });
const isSized = (value: object): value is Sized => 'type' in value;

type Value = string | number | Sized | readonly Value[] | { readonly [key: string]: Value };

function encode(value: Value): Buffer {
  if (typeof value === 'string') return field('text', Buffer.from(value));
  if (typeof value === 'number') return field('uint32', number(value, 4));
  if (Array.isArray(value)) {
    return Buffer.concat([head('array', value.length), ...value.map((item: Value) => encode(item))]);
  }
  if (isSized(value)) return field(value.type, number(value.value, value.type === 'uint16' ? 2 : 6));
  const entries = Object.entries(value as Readonly<Record<string, Value>>); // arrays are handled above
  return Buffer.concat([
    head('map', entries.length),
    ...entries.flatMap(([key, item]) => [encode(key), encode(item)]),
  ]);
}

function number(value: number, width: number): Buffer {
  const octets = Buffer.alloc(width);
  octets.writeUIntBE(value, 0, width);
  return octets;
}

const field = (type: keyof typeof TYPES, octets: Buffer) =>
  Buffer.concat([head(type, octets.length), octets]);

/** The control byte of a value of fewer than 29 octets or members. */
function head(type: keyof typeof TYPES, size: number): Buffer {
  if (size > 28) throw new RangeError(`${type} of ${size}`);
  const code = TYPES[type];
  return code > 7 ? Buffer.from([size, code - 7]) : Buffer.from([(code << 5) | size]);
}
