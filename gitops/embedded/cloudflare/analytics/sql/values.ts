import { SqlError } from './tokens.ts';

/** Dates are seconds since 1970. */
export type Value = number | string;

export type Type =
  | 'UInt8'
  | 'UInt16'
  | 'UInt32'
  | 'UInt64'
  | 'Int8'
  | 'Int16'
  | 'Int32'
  | 'Int64'
  | 'Float64'
  | 'String'
  | 'DateTime'
  | 'Interval'
  | 'Array(String)'
  | 'Array(Float64)';

/** A column as a table has it, and as a result shows it. */
export interface Column {
  readonly name: string;
  readonly type: Type;
}

export const isWhole = (type: Type): boolean => /^U?Int\d+$/.test(type);
export const isNumber = (type: Type): boolean => type === 'Float64' || isWhole(type);

const bitsOf = (type: Type): number => Number(/\d+$/.exec(type)?.[0]);

/** The smallest type of a whole number that isn't negative. */
export function wholeType(value: number): Type {
  if (value < 2 ** 8) return 'UInt8';
  if (value < 2 ** 16) return 'UInt16';
  return value < 2 ** 32 ? 'UInt32' : 'UInt64';
}

/** The type of the result of `+`, `-` or `*`: wider than both types up to 64 bits, as in ClickHouse. */
export function widerType(operator: string, left: Type, right: Type): Type {
  if (left === 'Float64' || right === 'Float64') return 'Float64';
  const bits = Math.min(64, 2 * Math.max(bitsOf(left), bitsOf(right)));
  const signed = operator === '-' || left.startsWith('Int') || right.startsWith('Int');
  return `${signed ? 'Int' : 'UInt'}${bits}` as Type; // 16, 32 or 64
}

/** The type that holds values of both types. Throws `SqlError` where there is none. */
export function commonType(left: Type, right: Type): Type {
  if (left === right) return left;
  if (!isNumber(left) || !isNumber(right)) {
    throw new SqlError(`there is no common type of ${left} and ${right}`);
  }
  if (left === 'Float64' || right === 'Float64') return 'Float64';
  const bits = Math.max(bitsOf(left), bitsOf(right));
  if (left.startsWith('Int') === right.startsWith('Int')) {
    return bits === bitsOf(left) ? left : right;
  }
  return `Int${Math.min(64, bits * 2)}` as Type; // 16, 32 or 64
}

const pad = (value: number) => String(value).padStart(2, '0');

/** `YYYY-MM-DD hh:mm:ss` in UTC. */
function dateText(seconds: number): string {
  const date = new Date(seconds * 1_000);
  const day = `${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
  return `${day} ${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}:${pad(date.getUTCSeconds())}`;
}

/** Seconds since 1970, from a text that is this number or `YYYY-MM-DD hh:mm:ss` in UTC. Throws `SqlError`. */
export function secondsOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  const time = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(text)
    ? Date.parse(`${text.replace(' ', 'T')}Z`)
    : Number.NaN;
  if (Number.isNaN(time)) throw new SqlError(`can’t read a DateTime from ’${text}’`);
  return time / 1_000;
}

/** A value as results show it: whole numbers of 64 bits are texts, numbers that JSON lacks are null. */
export function resultJson(value: Value | readonly Value[], type: Type): unknown {
  if (Array.isArray(value)) return value;
  if (type === 'DateTime') return dateText(Number(value));
  if (type === 'UInt64' || type === 'Int64') return String(value);
  return typeof value === 'number' && !Number.isFinite(value) ? null : value;
}
