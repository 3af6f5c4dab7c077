import { AGGREGATES, type Aggregate } from './aggregates.ts';
import type { Compiled } from './compiled.ts';
import { FUNCTIONS } from './functions.ts';
import { OPERATORS } from './operators.ts';
import { type Expression, expressionText } from './syntax.ts';
import { SqlError } from './tokens.ts';
import { type Column, type Value, wholeType } from './values.ts';

type Aliases = ReadonlyMap<string, Expression>;

export interface RowScope {
  readonly columns: readonly Column[];
  /** Seconds since 1970. */
  readonly now: number;
}

/** Replaces aliases by what they name; within its own expression an alias is the column of that name. */
export function expanded(expression: Expression, aliases: Aliases): Expression {
  switch (expression.kind) {
    case 'name': {
      const meant = aliases.get(expression.name);
      if (meant === undefined) return expression;
      const others = new Map([...aliases].filter(([name]) => name !== expression.name));
      return expanded(meant, others);
    }
    case 'operator':
    case 'call':
      return { ...expression, operands: expression.operands.map((one) => expanded(one, aliases)) };
    default:
      return expression;
  }
}

/** Compiles an expression of a row. Throws `SqlError`. */
export function compileRow(expression: Expression, scope: RowScope): Compiled {
  return compile(expression, scope, (one) => {
    if (one.kind === 'call' && AGGREGATES[one.name.toLowerCase()] !== undefined) {
      throw new SqlError(`${one.name} must not be here: it is a function of groups`);
    }
    if (one.kind !== 'name') return null;
    const index = scope.columns.findIndex(({ name }) => name === one.name);
    const column = scope.columns[index];
    if (column === undefined) throw new SqlError(`unable to find type of column: ${one.name}`);
    return { type: column.type, of: (row) => row[index] as Value }; // a row has all columns
  });
}

/** The aggregates of a grouped query. Its expressions see one row for each group: the keys, then these. */
export class Groups {
  readonly aggregates: Aggregate[] = [];
  readonly keys: readonly Compiled[];
  readonly #texts: readonly string[];
  readonly #scope: RowScope;

  constructor(keys: readonly Expression[], scope: RowScope) {
    this.keys = keys.map((key) => compileRow(key, scope));
    this.#texts = keys.map(expressionText);
    this.#scope = scope;
  }

  compile(expression: Expression): Compiled {
    return compile(expression, this.#scope, (one) => {
      const index = this.#texts.indexOf(expressionText(one));
      const key = this.keys[index];
      if (key !== undefined) return { type: key.type, of: (row) => row[index] as Value }; // keys come first
      if (one.kind === 'name') {
        throw new SqlError(`column ${one.name} is neither in GROUP BY nor in a function of groups`);
      }
      const make = one.kind === 'call' ? AGGREGATES[one.name.toLowerCase()] : undefined;
      if (one.kind !== 'call' || make === undefined) return null;
      const row = (operand: Expression) => compileRow(operand, this.#scope);
      const { name, distinct } = one;
      const made = make({
        name,
        distinct,
        operands: one.operands.map(row),
        parameters: one.parameters.map(row),
      });
      const place = this.keys.length + this.aggregates.push(made) - 1;
      return { type: made.type, of: (values) => values[place] as Value }; // then the aggregates
    });
  }
}

/** Whether an expression has a function of groups. */
export function isAggregate(expression: Expression): boolean {
  if (expression.kind === 'call' && AGGREGATES[expression.name.toLowerCase()] !== undefined) return true;
  return (
    (expression.kind === 'call' || expression.kind === 'operator') && expression.operands.some(isAggregate)
  );
}

function compile(
  expression: Expression,
  scope: RowScope,
  special: (expression: Expression) => Compiled | null,
): Compiled {
  const found = special(expression);
  if (found !== null) return found;
  switch (expression.kind) {
    case 'number': {
      const value = Number(expression.text);
      return literal(/[.eE]/.test(expression.text) ? 'Float64' : wholeType(value), value);
    }
    case 'string':
      return literal('String', expression.value);
    case 'boolean':
      return literal('UInt8', Number(expression.value));
    case 'interval':
      return { ...literal('Interval', expression.count), interval: expression };
    case 'name':
      throw new SqlError(`unable to find type of column: ${expression.name}`);
    case 'operator': {
      const make = OPERATORS[expression.operator];
      if (make === undefined) throw new SqlError(`unsupported operator: ${expression.operator}`);
      return make(
        expression.operands.map((one) => compile(one, scope, special)),
        expression.operator,
      );
    }
    case 'call': {
      const { name, distinct, parameters } = expression;
      if (name.toLowerCase() === 'now' && expression.operands.length === 0)
        return literal('DateTime', scope.now);
      const make = FUNCTIONS[name.toLowerCase()];
      if (make === undefined) throw new SqlError(`unsupported function: ${name}`);
      if (distinct || parameters.length > 0)
        throw new SqlError(`${name} takes neither DISTINCT nor parameters`);
      return make(
        expression.operands.map((one) => compile(one, scope, special)),
        name,
      );
    }
  }
}

const literal = (type: Compiled['type'], value: Value): Compiled => ({
  type,
  constant: true,
  of: () => value,
});
