import { type Compiled, type MakeCompiled, made, number, ofTexts, takes } from './compiled.ts';
import { addInterval } from './dates.ts';
import { commonType, secondsOf, type Value, widerType } from './values.ts';

const compare = (holds: (order: number) => boolean): MakeCompiled =>
  takes(2, (operands) => {
    const [left, right] = comparable(operands as [Compiled, Compiled]); // takes() has checked the count
    const of = (row: readonly Value[]) => {
      const [one, other] = [left.of(row), right.of(row)];
      return Number(holds(one < other ? -1 : one > other ? 1 : one === other ? 0 : Number.NaN));
    };
    return made('UInt8', of, operands);
  });

/** A constant text that is compared with a date is read as a date. Throws `SqlError` for types that don't compare. */
function comparable([left, right]: readonly [Compiled, Compiled]): [Compiled, Compiled] {
  const read = (one: Compiled): Compiled => {
    const value = secondsOf(String(one.of([])));
    return { type: 'DateTime', constant: true, of: () => value };
  };
  if (left.type === 'DateTime' && right.type === 'String' && right.constant) return [left, read(right)];
  if (right.type === 'DateTime' && left.type === 'String' && left.constant) return [read(left), right];
  commonType(left.type, right.type);
  return [left, right];
}

function calculated(
  operator: '+' | '-' | '*' | '%',
  compute: (one: number, other: number) => number,
): MakeCompiled {
  return takes(2, (operands, name) => {
    const [left, right] = operands as [Compiled, Compiled]; // takes() has checked the count
    if (left.type === 'DateTime' && right.interval !== undefined && (operator === '+' || operator === '-')) {
      const { count, unit } = right.interval;
      return made(
        'DateTime',
        (row) => addInterval(Number(left.of(row)), operator === '+' ? count : -count, unit),
        operands,
      );
    }
    const [one, other] = operands.map((operand) => number(operand, name));
    const type =
      operator === '%' ? commonType(left.type, right.type) : widerType(operator, left.type, right.type);
    return made(type, (row) => compute(one?.(row) ?? 0, other?.(row) ?? 0), operands);
  });
}

const logical =
  (compute: (values: readonly boolean[]) => boolean): MakeCompiled =>
  (operands, name) => {
    const values = operands.map((operand) => number(operand, name));
    return made('UInt8', (row) => Number(compute(values.map((value) => value(row) !== 0))), operands);
  };

const like = (flags: string) =>
  ofTexts((value, pattern) => {
    const source = pattern
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll('%', '.*')
      .replaceAll('_', '.');
    return Number(new RegExp(`^${source}$`, `su${flags}`).test(value));
  }, 'UInt8');

export const OPERATORS: Readonly<Record<string, MakeCompiled>> = {
  '=': compare((order) => order === 0),
  '<>': compare((order) => order !== 0),
  '<': compare((order) => order < 0),
  '>': compare((order) => order > 0),
  '<=': compare((order) => order <= 0),
  '>=': compare((order) => order >= 0),
  '+': calculated('+', (one, other) => one + other),
  '-': calculated('-', (one, other) => one - other),
  '*': calculated('*', (one, other) => one * other),
  '%': calculated('%', (one, other) => one % other),
  '/': takes(2, (operands, name) => {
    const [one, other] = operands.map((operand) => number(operand, name));
    return made('Float64', (row) => (one?.(row) ?? 0) / (other?.(row) ?? 0), operands);
  }),
  negate: takes(1, (operands, name) => {
    const value = number(operands[0] as Compiled, name); // takes() has checked the count
    const type = widerType('-', operands[0]?.type ?? 'Float64', 'UInt8');
    return made(type, (row) => -value(row), operands);
  }),
  not: logical(([value]) => !value),
  and: logical((values) => values.every(Boolean)),
  or: logical((values) => values.some(Boolean)),
  like: like(''),
  ilike: like('i'),
  in: (operands, name) => {
    const [value, ...list] = operands as [Compiled, ...Compiled[]]; // the parser demands them
    const equals = list.map((one) => (OPERATORS['='] as MakeCompiled)([value, one], name)); // defined above
    return made('UInt8', (row) => Number(equals.some((equal) => equal.of(row) !== 0)), operands);
  },
};
