import {
  type Compiled,
  date,
  type MakeCompiled,
  made,
  number,
  ofTexts,
  refuse,
  takes,
  text,
} from './compiled.ts';
import { startOfInterval } from './dates.ts';
import { SqlError } from './tokens.ts';
import { commonType, isNumber, isWhole, secondsOf, type Type, type Value } from './values.ts';

const ofNumber = (compute: (value: number) => number, type: Type = 'Float64') =>
  takes(1, ([one], name) => {
    const value = number(one as Compiled, name); // takes() has checked the count
    return made(type, (row) => compute(value(row)), [one as Compiled]);
  });

const ofText = (compute: (value: string) => Value, type: Type) =>
  takes(1, ([one], name) => {
    const value = text(one as Compiled, name); // takes() has checked the count
    return made(type, (row) => compute(value(row)), [one as Compiled]);
  });

const rounded = (round: (value: number) => number) =>
  takes(
    1,
    (operands, name) => {
      const [value, digits = () => 0] = operands.map((operand) => number(operand, name));
      const of = (row: readonly Value[]) => {
        const factor = 10 ** digits(row);
        return round((value?.(row) ?? 0) * factor) / factor;
      };
      return made(operands[0]?.type ?? 'Float64', of, operands);
    },
    2,
  );

const startOf = (count: number, unit: string) =>
  takes(1, ([one], name) => {
    const value = date(one as Compiled, name); // takes() has checked the count
    return made('DateTime', (row) => startOfInterval(value(row), count, unit), [one as Compiled]);
  });

const partOf = (part: (date: Date) => number, type: Type = 'UInt8') =>
  takes(1, ([one], name) => {
    const value = date(one as Compiled, name); // takes() has checked the count
    return made(type, (row) => part(new Date(value(row) * 1_000)), [one as Compiled]);
  });

const ascii = (value: string, how: 'toLowerCase' | 'toUpperCase') =>
  value.replace(/[A-Za-z]+/g, (part) => part[how]());
const letters = (value: string) => [...value];
const MONDAY = 4; // 1970 began on a Thursday

/** The documented functions of rows, by their names in lower case. The functions of groups are in `aggregates.ts`. */
export const FUNCTIONS: Readonly<Record<string, MakeCompiled>> = {
  if: takes(3, (operands, name) => {
    const [condition, yes, no] = operands as [Compiled, Compiled, Compiled]; // takes() has checked the count
    const holds = number(condition, name);
    return made(
      commonType(yes.type, no.type),
      (row) => (holds(row) !== 0 ? yes.of(row) : no.of(row)),
      operands,
    );
  }),
  intdiv: takes(2, (operands, name) => {
    const [left, right] = operands.map((operand) => number(operand, name));
    const [type = 'Int64'] = operands.map((one) => one.type);
    const of = (row: readonly Value[]) => {
      const divisor = right?.(row) ?? 0;
      if (divisor === 0) throw new SqlError('division by zero');
      return Math.floor((left?.(row) ?? 0) / divisor);
    };
    return made(isWhole(type) ? type : 'Int64', of, operands);
  }),
  log: ofNumber(Math.log),
  ln: ofNumber(Math.log),
  pow: takes(2, (operands, name) => {
    const [base, exponent] = operands.map((operand) => number(operand, name));
    return made('Float64', (row) => (base?.(row) ?? 0) ** (exponent?.(row) ?? 0), operands);
  }),
  round: rounded(Math.round),
  floor: rounded(Math.floor),
  ceil: rounded(Math.ceil),
  touint8: takes(1, (operands, name) => converted(operands, name, 8)),
  touint32: takes(1, (operands, name) => converted(operands, name, 32)),
  todatetime: takes(
    1,
    (operands, name) => {
      const [one, zone] = operands as [Compiled, Compiled?]; // takes() has checked the count
      if (zone !== undefined && zone.of([]) !== 'Etc/UTC')
        throw new SqlError('unsupported timezone: this emulator has Etc/UTC only');
      if (one.type === 'DateTime') return one;
      if (one.type === 'String') return made('DateTime', (row) => secondsOf(String(one.of(row))), operands);
      const value = number(one, name);
      return made('DateTime', (row) => Math.floor(value(row)), operands);
    },
    2,
  ),
  tounixtimestamp: partOf((value) => Math.floor(value.getTime() / 1_000), 'UInt32'),
  toyear: partOf((value) => value.getUTCFullYear(), 'UInt16'),
  tomonth: partOf((value) => value.getUTCMonth() + 1),
  todayofmonth: partOf((value) => value.getUTCDate()),
  todayofweek: partOf((value) => value.getUTCDay() || 7),
  tohour: partOf((value) => value.getUTCHours()),
  tominute: partOf((value) => value.getUTCMinutes()),
  tosecond: partOf((value) => value.getUTCSeconds()),
  toyyyymm: partOf((value) => value.getUTCFullYear() * 100 + value.getUTCMonth() + 1, 'UInt32'),
  tostartofinterval: takes(2, (operands, name) => {
    const [one, length] = operands as [Compiled, Compiled]; // takes() has checked the count
    const value = date(one, name);
    const { interval } = length;
    if (interval === undefined) throw refuse(name, length, 'an INTERVAL');
    return made('DateTime', (row) => startOfInterval(value(row), interval.count, interval.unit), operands);
  }),
  tostartofyear: startOf(1, 'YEAR'),
  tostartofmonth: startOf(1, 'MONTH'),
  tostartofweek: takes(1, ([one], name) => {
    const value = date(one as Compiled, name); // takes() has checked the count
    const offset = MONDAY * 86_400;
    const of = (row: readonly Value[]) => startOfInterval(value(row) - offset, 7, 'DAY') + offset;
    return made('DateTime', of, [one as Compiled]);
  }),
  tostartofday: startOf(1, 'DAY'),
  tostartofhour: startOf(1, 'HOUR'),
  tostartoffifteenminutes: startOf(15, 'MINUTE'),
  tostartoftenminutes: startOf(10, 'MINUTE'),
  tostartoffiveminutes: startOf(5, 'MINUTE'),
  tostartofminute: startOf(1, 'MINUTE'),
  length: ofText((value) => letters(value).length, 'UInt64'),
  empty: ofText((value) => Number(value === ''), 'UInt8'),
  lower: ofText((value) => ascii(value, 'toLowerCase'), 'String'),
  upper: ofText((value) => ascii(value, 'toUpperCase'), 'String'),
  lowerutf8: ofText((value) => value.toLowerCase(), 'String'),
  upperutf8: ofText((value) => value.toUpperCase(), 'String'),
  startswith: ofTexts((value, start) => Number(value.startsWith(start)), 'UInt8'),
  endswith: ofTexts((value, end) => Number(value.endsWith(end)), 'UInt8'),
  // Its operands are those of `position(needle IN haystack)`.
  position: ofTexts(
    (needle, haystack) =>
      letters(haystack.split(needle)[0] ?? '').length * Number(haystack.includes(needle)) +
      Number(haystack.includes(needle)),
    'UInt64',
  ),
  substring: takes(
    2,
    (operands, name) => {
      const [one, ...places] = operands as [Compiled, ...Compiled[]]; // takes() has checked the count
      const value = text(one, name);
      const [offset, count] = places.map((place) => number(place, name));
      const of = (row: readonly Value[]) => {
        const start = (offset?.(row) ?? 1) - 1;
        return letters(value(row))
          .slice(start, count === undefined ? undefined : start + count(row))
          .join('');
      };
      return made('String', of, operands);
    },
    3,
  ),
};

function converted([one]: readonly Compiled[], name: string, bits: number): Compiled {
  const operand = one as Compiled; // takes() has checked the count
  if (operand.type !== 'DateTime' && operand.type !== 'String' && !isNumber(operand.type)) {
    throw refuse(name, operand, 'a number');
  }
  const of = (row: readonly Value[]) => {
    const value = Math.trunc(Number(operand.of(row)));
    if (Number.isNaN(value)) throw new SqlError(`${name} can’t read a number from ’${operand.of(row)}’`);
    return ((value % 2 ** bits) + 2 ** bits) % 2 ** bits;
  };
  return made(`UInt${bits}` as Type, of, [operand]); // 8 or 32
}
