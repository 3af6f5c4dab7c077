/** `operator`: also `in`, `not in`, `between`, `like` … with their operands in order. */
export type Expression =
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'interval'; readonly count: number; readonly unit: string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'operator'; readonly operator: string; readonly operands: readonly Expression[] }
  | {
      readonly kind: 'call';
      readonly name: string;
      /** As in `quantileExactWeighted(0.5)(…)`. */
      readonly parameters: readonly Expression[];
      readonly operands: readonly Expression[];
      readonly distinct: boolean;
    };

export interface Item {
  readonly expression: Expression;
  readonly alias: string;
}

export interface Select {
  /** `*`: all columns. */
  readonly items: readonly (Item | '*')[];
  readonly from: string | Select | null;
  readonly where: Expression | null;
  readonly group: readonly Expression[];
  readonly having: Expression | null;
  readonly order: readonly { readonly expression: Expression; readonly descending: boolean }[];
  /** `null`: all rows. */
  readonly limit: number | null;
  readonly offset: number;
}

export type Format = 'JSON' | 'JSONEachRow' | 'TabSeparated';

export interface Statement {
  readonly query: Select | 'tables' | 'timezones' | 'timezone';
  readonly format: Format;
}

/** The name of a column without an alias. Expressions with the same text are equal. */
export function expressionText(expression: Expression): string {
  const all = (list: readonly Expression[]) => list.map(expressionText).join(', ');
  switch (expression.kind) {
    case 'number':
      return expression.text;
    case 'string':
      return `'${expression.value}'`;
    case 'boolean':
      return String(expression.value);
    case 'interval':
      return `INTERVAL '${expression.count}' ${expression.unit}`;
    case 'name':
      return expression.name;
    case 'operator':
      return `${expression.operator}(${all(expression.operands)})`;
    case 'call': {
      const { name, parameters, operands, distinct } = expression;
      const before = parameters.length === 0 ? '' : `(${all(parameters)})`;
      return `${name}${before}(${distinct ? 'DISTINCT ' : ''}${all(operands)})`;
    }
  }
}
