import { SqlError } from './tokens.ts';
import { isNumber, type Type, type Value } from './values.ts';

/** An expression that is ready to run on rows. */
export interface Compiled {
  readonly type: Type;
  /** True for an expression whose value is the same for all rows, such as a literal. */
  readonly constant?: boolean;
  /** Of `INTERVAL`. */
  readonly interval?: { readonly count: number; readonly unit: string };
  of(row: readonly Value[]): Value;
}

export type MakeCompiled = (operands: readonly Compiled[], name: string) => Compiled;

export const refuse = (name: string, { type }: Compiled, wanted: string) =>
  new SqlError(`illegal type ${type} of an argument of ${name}: it takes ${wanted}`);

export function number(operand: Compiled, name: string): (row: readonly Value[]) => number {
  if (!isNumber(operand.type)) throw refuse(name, operand, 'a number');
  return (row) => Number(operand.of(row));
}
export function text(operand: Compiled, name: string): (row: readonly Value[]) => string {
  if (operand.type !== 'String') throw refuse(name, operand, 'a String');
  return (row) => String(operand.of(row));
}
export function date(operand: Compiled, name: string): (row: readonly Value[]) => number {
  if (operand.type !== 'DateTime') throw refuse(name, operand, 'a DateTime');
  return (row) => Number(operand.of(row));
}

export const made = (type: Type, of: Compiled['of'], operands: readonly Compiled[]): Compiled => ({
  type,
  of,
  constant: operands.every(({ constant }) => constant),
});

/** `count` operands, or `count` to `most`. */
export function takes(
  count: number,
  make: (operands: Compiled[], name: string) => Compiled,
  most = count,
): MakeCompiled {
  return (operands, name) => {
    if (operands.length >= count && operands.length <= most) return make([...operands], name);
    const wanted = count === most ? `${count}` : `${count} to ${most}`;
    throw new SqlError(`${name} takes ${wanted} arguments, not ${operands.length}`);
  };
}

export const ofTexts = (compute: (one: string, other: string) => Value, type: Type) =>
  takes(2, (operands, name) => {
    const [one, other] = operands.map((operand) => text(operand, name));
    return made(type, (row) => compute(one?.(row) ?? '', other?.(row) ?? ''), operands);
  });
