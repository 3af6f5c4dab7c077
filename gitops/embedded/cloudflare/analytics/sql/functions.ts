import { addInterval, startOfInterval } from './dates.ts';
import { SqlError } from './tokens.ts';
import { commonType, isNumber, isWhole, secondsOf, type Type, type Value, widerType } from './values.ts';

/** An expression that is ready to run on rows. */
export interface Compiled {
  readonly type: Type;
  /** Of literals; what doesn’t depend on a row. */
  readonly constant?: boolean;
  /** Of `INTERVAL`. */
  readonly interval?: { readonly count: number; readonly unit: string };
  of(row: readonly Value[]): Value;
}

type Make = (operands: readonly Compiled[], name: string) => Compiled;

const refuse = (name: string, { type }: Compiled, wanted: string) =>
  new SqlError(`illegal type ${type} of an argument of ${name}: it takes ${wanted}`);

function number(operand: Compiled, name: string): (row: readonly Value[]) => number {
  if (!isNumber(operand.type)) throw refuse(name, operand, 'a number');
  return (row) => Number(operand.of(row));
}
function text(operand: Compiled, name: string): (row: readonly Value[]) => string {
  if (operand.type !== 'String') throw refuse(name, operand, 'a String');
  return (row) => String(operand.of(row));
}
function date(operand: Compiled, name: string): (row: readonly Value[]) => number {
  if (operand.type !== 'DateTime') throw refuse(name, operand, 'a DateTime');
  return (row) => Number(operand.of(row));
}

const made = (type: Type, of: Compiled['of'], operands: readonly Compiled[]): Compiled => ({
  type,
  of,
  constant: operands.every(({ constant }) => constant),
});

/** `count` operands, or `count` to `most`. */
function takes(count: number, make: (operands: Compiled[], name: string) => Compiled, most = count): Make {
  return (operands, name) => {
    if (operands.length >= count && operands.length <= most) return make([...operands], name);
    const wanted = count === most ? `${count}` : `${count} to ${most}`;
    throw new SqlError(`${name} takes ${wanted} arguments, not ${operands.length}`);
  };
}

const ofNumber = (compute: (value: number) => number, type: Type = 'Float64') =>
  takes(1, ([one], name) => {
    const value = number(one as Compiled, name); // takes() has counted
    return made(type, (row) => compute(value(row)), [one as Compiled]);
  });

const ofText = (compute: (value: string) => Value, type: Type) =>
  takes(1, ([one], name) => {
    const value = text(one as Compiled, name); // takes() has counted
    return made(type, (row) => compute(value(row)), [one as Compiled]);
  });

const ofTexts = (compute: (one: string, other: string) => Value, type: Type) =>
  takes(2, (operands, name) => {
    const [one, other] = operands.map((operand) => text(operand, name));
    return made(type, (row) => compute(one?.(row) ?? '', other?.(row) ?? ''), operands);
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
    const value = date(one as Compiled, name); // takes() has counted
    return made('DateTime', (row) => startOfInterval(value(row), count, unit), [one as Compiled]);
  });

const partOf = (part: (date: Date) => number, type: Type = 'UInt8') =>
  takes(1, ([one], name) => {
    const value = date(one as Compiled, name); // takes() has counted
    return made(type, (row) => part(new Date(value(row) * 1_000)), [one as Compiled]);
  });

const ascii = (value: string, how: 'toLowerCase' | 'toUpperCase') =>
  value.replace(/[A-Za-z]+/g, (part) => part[how]());
const letters = (value: string) => [...value];
const MONDAY = 4; // 1970 began on a Thursday

/** The documented functions that this dialect has, by their names in small letters. Those of groups are elsewhere. */
export const FUNCTIONS: Readonly<Record<string, Make>> = {
  if: takes(3, (operands, name) => {
    const [condition, yes, no] = operands as [Compiled, Compiled, Compiled]; // takes() has counted
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
      const [one, zone] = operands as [Compiled, Compiled?]; // takes() has counted
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
    const [one, length] = operands as [Compiled, Compiled]; // takes() has counted
    const value = date(one, name);
    const { interval } = length;
    if (interval === undefined) throw refuse(name, length, 'an INTERVAL');
    return made('DateTime', (row) => startOfInterval(value(row), interval.count, interval.unit), operands);
  }),
  tostartofyear: startOf(1, 'YEAR'),
  tostartofmonth: startOf(1, 'MONTH'),
  tostartofweek: takes(1, ([one], name) => {
    const value = date(one as Compiled, name); // takes() has counted
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
      const [one, ...places] = operands as [Compiled, ...Compiled[]]; // takes() has counted
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
  const operand = one as Compiled; // takes() has counted
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

const compare = (holds: (order: number) => boolean): Make =>
  takes(2, (operands) => {
    const [left, right] = comparable(operands as [Compiled, Compiled]); // takes() has counted
    const of = (row: readonly Value[]) => {
      const [one, other] = [left.of(row), right.of(row)];
      return Number(holds(one < other ? -1 : one > other ? 1 : one === other ? 0 : Number.NaN));
    };
    return made('UInt8', of, operands);
  });

/** A text beside a date is read as one. Throws `SqlError` for types that don't compare. */
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

function calculated(operator: '+' | '-' | '*' | '%', compute: (one: number, other: number) => number): Make {
  return takes(2, (operands, name) => {
    const [left, right] = operands as [Compiled, Compiled]; // takes() has counted
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
  (compute: (values: readonly boolean[]) => boolean): Make =>
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

export const OPERATORS: Readonly<Record<string, Make>> = {
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
    const value = number(operands[0] as Compiled, name); // takes() has counted
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
    const equals = list.map((one) => (OPERATORS['='] as Make)([value, one], name)); // above
    return made('UInt8', (row) => Number(equals.some((equal) => equal.of(row) !== 0)), operands);
  },
};
