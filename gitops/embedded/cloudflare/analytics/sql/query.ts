import { compileRow, expanded, Groups, isAggregate, type RowScope } from './compile.ts';
import type { Compiled } from './compiled.ts';
import type { Expression, Item, Select } from './syntax.ts';
import { SqlError } from './tokens.ts';
import type { Column, Value } from './values.ts';

type Row = readonly Value[];

/** Seconds since 1970, both ends included. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

export interface Table {
  readonly columns: readonly Column[];
  /** At least the rows whose `timestamp` is in the range. */
  rows(range: TimeRange): Iterable<Row>;
}

interface Source {
  /** `null`: there is no such table. */
  table(name: string): Table | null;
  /** Seconds since 1970. */
  readonly now: number;
}

export interface Result {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

const NO_TABLE: Table = { columns: [], rows: () => [[]] };

/** Throws `SqlError`. */
export function runSelect(select: Select, source: Source): Result {
  const table = tableOf(select.from, source);
  const scope = { columns: table.columns, now: source.now };
  const items = select.items.flatMap((item): readonly Item[] =>
    item === '*'
      ? table.columns.map(({ name }) => ({ expression: { kind: 'name', name }, alias: name }))
      : [item],
  );
  const aliases = new Map(items.map(({ alias, expression }) => [alias, expression]));
  const whole = (expression: Expression) => expanded(expression, aliases);
  const where = select.where === null ? null : compileRow(whole(select.where), scope);
  const rows = filtered(
    table.rows(timeRange(select.where === null ? null : whole(select.where), scope)),
    where,
  );

  const shown = items.map(({ expression }) => whole(expression));
  const order = select.order.map(({ expression, descending }) => ({
    expression: whole(expression),
    descending,
  }));
  const having = select.having === null ? null : whole(select.having);
  const isGrouped =
    select.group.length > 0 ||
    having !== null ||
    [...shown, ...order.map((one) => one.expression)].some(isAggregate);
  if (!isGrouped) {
    return finished(select, items, {
      compile: (one) => compileRow(one, scope),
      shown,
      order,
      rows: () => rows,
    });
  }
  const groups = new Groups(select.group.map(whole), scope);
  const condition = having === null ? null : groups.compile(having);
  return finished(select, items, {
    compile: (one) => groups.compile(one),
    shown,
    order,
    rows: () => filtered(grouped(rows, groups), condition),
  });
}

function tableOf(from: Select['from'], source: Source): Table {
  if (from === null) return NO_TABLE;
  if (typeof from !== 'string') {
    const { columns, rows } = runSelect(from, source);
    return { columns, rows: () => rows };
  }
  const table = source.table(from);
  if (table === null) throw new SqlError(`unknown table: ${from}`);
  return table;
}

function filtered(rows: Iterable<Row>, condition: Compiled | null): Row[] {
  if (condition !== null && condition.type !== 'UInt8') throw new SqlError('a condition must be a boolean');
  const all = [...rows];
  return condition === null ? all : all.filter((row) => condition.of(row) !== 0);
}

function grouped(rows: readonly Row[], groups: Groups): Row[] {
  const found = Map.groupBy(rows, (row) => JSON.stringify(groups.keys.map((key) => key.of(row))));
  // Without GROUP BY there is one group, even of no rows.
  if (groups.keys.length === 0 && rows.length === 0) found.set('[]', []);
  return [...found.values()].map((own) => [
    ...groups.keys.map((key) => key.of(own[0] ?? [])),
    ...groups.aggregates.map((aggregate) => aggregate.over(own) as Value), // nothing computes with a list
  ]);
}

interface Plan {
  compile(expression: Expression): Compiled;
  readonly shown: readonly Expression[];
  readonly order: readonly { readonly expression: Expression; readonly descending: boolean }[];
  /** Called when all is compiled. */
  rows(): Row[];
}

function finished({ limit, offset }: Select, items: readonly Item[], plan: Plan): Result {
  const shown = plan.shown.map((one) => plan.compile(one));
  const order = plan.order.map(({ expression, descending }) => ({
    by: plan.compile(expression),
    descending,
  }));
  const sorted = plan.rows().sort((left, right) => {
    for (const { by, descending } of order) {
      const [one, other] = [by.of(left), by.of(right)];
      if (one !== other) return one < other === descending ? 1 : -1;
    }
    return 0;
  });
  const page = sorted.slice(offset, limit === null ? undefined : offset + limit);
  return {
    columns: items.map(({ alias }, index) => ({ name: alias, type: shown[index]?.type ?? 'String' })),
    rows: page.map((row) => shown.map((one) => one.of(row))),
  };
}

/** The range of time that conditions on `timestamp` alone allow. */
function timeRange(where: Expression | null, scope: RowScope): TimeRange {
  const all = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
  if (where?.kind !== 'operator') return all;
  const [left, right] = where.operands;
  if (where.operator === 'and') {
    const ranges = where.operands.map((one) => timeRange(one, scope));
    return { from: Math.max(...ranges.map(({ from }) => from)), to: Math.min(...ranges.map(({ to }) => to)) };
  }
  if (left?.kind !== 'name' || left.name !== 'timestamp' || right === undefined) return all;
  // The bound is computed like the condition itself, so no row that the condition accepts is outside of it.
  const bound = compileRow(right, { ...scope, columns: [] });
  if (bound.type !== 'DateTime') return all;
  const time = Number(bound.of([]));
  if (where.operator === '>' || where.operator === '>=') return { ...all, from: time };
  if (where.operator === '<' || where.operator === '<=') return { ...all, to: time };
  return all;
}
