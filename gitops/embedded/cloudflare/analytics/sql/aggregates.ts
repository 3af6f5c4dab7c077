import type { Compiled } from './compiled.ts';
import { SqlError } from './tokens.ts';
import { isNumber, isWhole, type Type, type Value } from './values.ts';

type Rows = readonly (readonly Value[])[];

/** A function of all rows of a group. */
export interface Aggregate {
  readonly type: Type;
  over(rows: Rows): Value | Value[];
}

interface Given {
  readonly operands: readonly Compiled[];
  readonly parameters: readonly Compiled[];
  readonly distinct: boolean;
  readonly name: string;
}

type Make = (given: Given) => Aggregate;

const wrong = (name: string, detail: string) => new SqlError(`${name}: ${detail}`);

function one({ operands, name }: Given): Compiled {
  const [operand] = operands;
  if (operand === undefined || operands.length > 1) throw wrong(name, 'takes one column');
  return operand;
}

function two({ operands, name }: Given): [Compiled, Compiled] {
  const [first, second] = operands;
  if (first === undefined || second === undefined || operands.length > 2)
    throw wrong(name, 'takes two columns');
  return [first, second];
}

function plain(given: Given): void {
  if (given.distinct) throw wrong(given.name, 'DISTINCT is not supported');
  if (given.parameters.length > 0) throw wrong(given.name, 'takes no parameters');
}

function numeric(operand: Compiled, name: string): Compiled {
  if (!isNumber(operand.type)) throw wrong(name, `illegal type ${operand.type}`);
  return operand;
}

function valuesOf({ of }: Compiled, rows: Rows, distinct: boolean): Value[] {
  const values = rows.map((row) => of(row));
  return distinct ? [...new Set(values)] : values;
}

/** The answer of a function over no rows, as in ClickHouse: the default of the column’s type. */
const emptyOf = ({ type }: Compiled): Value => (type === 'String' ? '' : 0);

const sumOf = (values: readonly Value[]) => values.reduce<number>((sum, value) => sum + Number(value), 0);

function best(holds: (value: Value, other: Value) => boolean): Make {
  return (given) => {
    plain(given);
    const operand = one(given);
    return {
      type: operand.type,
      over: (rows) => {
        const values = valuesOf(operand, rows, false);
        const first = values[0] ?? emptyOf(operand);
        return values.reduce((known, value) => (holds(value, known) ? value : known), first);
      },
    };
  };
}

function bestBy(holds: (value: Value, other: Value) => boolean): Make {
  return (given) => {
    plain(given);
    const [shown, by] = two(given);
    return {
      type: shown.type,
      over(rows) {
        const [first, ...others] = rows;
        if (first === undefined) return emptyOf(shown);
        return shown.of(
          others.reduce((known, row) => (holds(by.of(row), by.of(known)) ? row : known), first),
        );
      },
    };
  };
}

function end(place: 0 | -1): Make {
  return (given) => {
    plain(given);
    const operand = one(given);
    return {
      type: operand.type,
      over: (rows) => rows.map((row) => operand.of(row)).at(place) ?? emptyOf(operand),
    };
  };
}

/** The level is the parameter, or the first operand of the older form. */
function quantile({ operands, parameters, distinct, name }: Given): Aggregate {
  const [level, value, weight, ...more] = [...parameters, ...operands];
  if (level === undefined || value === undefined || weight === undefined || more.length > 0 || distinct) {
    throw wrong(name, 'takes a level, a column and its weight');
  }
  const fraction = Number(numeric(level, name).of([]));
  if (!level.constant || !(fraction >= 0 && fraction <= 1)) throw wrong(name, 'the level must be 0 to 1');
  if (!isWhole(numeric(weight, name).type)) throw wrong(name, `illegal type ${weight.type} of the weight`);
  if (value.type !== 'DateTime') numeric(value, name);
  return {
    type: value.type,
    over(rows) {
      const sorted = rows
        .map((row) => [Number(value.of(row)), Number(weight.of(row))] as const)
        .sort(([left], [right]) => left - right);
      const needed = Math.ceil(sorted.reduce((sum, [, count]) => sum + count, 0) * fraction);
      let passed = 0;
      for (const [found, count] of sorted) {
        passed += count;
        if (passed >= needed) return found;
      }
      return value.type === 'Float64' ? Number.NaN : emptyOf(value);
    },
  };
}

function top(isWeighted: boolean): Make {
  return ({ operands, parameters, distinct, name }) => {
    const [value, weight, ...more] = operands;
    const fits =
      value !== undefined && more.length === 0 && (weight !== undefined) === isWeighted && !distinct;
    if (!fits || parameters.length > 1)
      throw wrong(name, `takes ${isWeighted ? 'a column and its weight' : 'one column'}`);
    const count = parameters[0] === undefined ? 10 : Number(numeric(parameters[0], name).of([]));
    return {
      type: value.type === 'String' ? 'Array(String)' : 'Array(Float64)',
      over(rows) {
        const sums = new Map<Value, number>();
        for (const row of rows) {
          const key = value.of(row);
          sums.set(key, (sums.get(key) ?? 0) + (weight === undefined ? 1 : Number(weight.of(row))));
        }
        return [...sums]
          .sort(([, left], [, right]) => right - left)
          .slice(0, count)
          .map(([key]) => key);
      },
    };
  };
}

/** The documented functions of groups, by their names in lower case. */
export const AGGREGATES: Readonly<Record<string, Make>> = {
  count: (given) => {
    if (given.parameters.length > 0) throw wrong(given.name, 'takes no parameters');
    if (!given.distinct) {
      if (given.operands.length > 0) throw wrong(given.name, 'takes no column without DISTINCT');
      return { type: 'UInt64', over: (rows) => rows.length };
    }
    const operand = one(given);
    return { type: 'UInt64', over: (rows) => valuesOf(operand, rows, true).length };
  },
  sum: (given) => {
    plain({ ...given, distinct: false });
    const operand = numeric(one(given), given.name);
    const type = !isWhole(operand.type) ? 'Float64' : operand.type.startsWith('U') ? 'UInt64' : 'Int64';
    return { type, over: (rows) => sumOf(valuesOf(operand, rows, given.distinct)) };
  },
  avg: (given) => {
    plain({ ...given, distinct: false });
    const operand = numeric(one(given), given.name);
    return {
      type: 'Float64',
      over(rows) {
        const values = valuesOf(operand, rows, given.distinct);
        return sumOf(values) / values.length;
      },
    };
  },
  min: best((value, other) => value < other),
  max: best((value, other) => value > other),
  argmin: bestBy((value, other) => value < other),
  argmax: bestBy((value, other) => value > other),
  first_value: end(0),
  last_value: end(-1),
  quantileexactweighted: quantile,
  quantileweighted: quantile,
  topk: top(false),
  topkweighted: top(true),
};
