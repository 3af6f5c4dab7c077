import type { Expression, Format, Item, Select, Statement } from './syntax.ts';
import { expressionText } from './syntax.ts';
import { SqlError, sqlTokens, type Token } from './tokens.ts';

const FORMATS: readonly Format[] = ['JSON', 'JSONEachRow', 'TabSeparated'];
const UNITS = ['YEAR', 'MONTH', 'DAY', 'HOUR', 'MINUTE', 'SECOND'];
/** Unquoted, these words can't be a name: of a column, a table, a function or an alias. */
const KEYWORDS = new Set(
  'SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET FORMAT AS AND OR NOT IN BETWEEN LIKE ILIKE ASC DESC ALL UNION JOIN'.split(
    ' ',
  ),
);
const COMPARISONS = ['=', '<', '>', '<=', '>=', '<>', '!='];

/** Reads one statement of the documented dialect. Throws `SqlError`. */
export function parseStatement(query: string): Statement {
  return new Parser(sqlTokens(query)).statement();
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  statement(): Statement {
    const query = this.#takeWord('SHOW') ? this.#shown() : this.#select();
    const format = this.#takeWord('FORMAT') ? this.#format() : 'JSON';
    if (this.#token.kind !== 'end') throw this.#unexpected();
    return { query, format };
  }

  get #token(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: 'end of query' };
  }

  #next(): Token {
    const token = this.#token;
    this.#at += 1;
    return token;
  }

  #unexpected(expected?: string): SqlError {
    const { text } = this.#token;
    return new SqlError(
      `sql parser error: ${expected === undefined ? 'unexpected' : `expected ${expected}, found`} ${text}`,
    );
  }

  #isWord(word: string): boolean {
    return this.#token.kind === 'word' && this.#token.text.toUpperCase() === word;
  }

  #takeWord(word: string): boolean {
    if (!this.#isWord(word)) return false;
    this.#at += 1;
    return true;
  }

  #takeSymbol(symbol: string): boolean {
    if (this.#token.kind !== 'symbol' || this.#token.text !== symbol) return false;
    this.#at += 1;
    return true;
  }

  #demandWord(word: string): void {
    if (!this.#takeWord(word)) throw this.#unexpected(word);
  }

  #demandSymbol(symbol: string): void {
    if (!this.#takeSymbol(symbol)) throw this.#unexpected(symbol);
  }

  #shown(): 'tables' | 'timezones' | 'timezone' {
    for (const one of ['tables', 'timezones', 'timezone'] as const) {
      if (this.#takeWord(one.toUpperCase())) return one;
    }
    throw this.#unexpected('TABLES, TIMEZONES or TIMEZONE');
  }

  #format(): Format {
    const format = FORMATS.find((name) => name.toLowerCase() === this.#token.text.toLowerCase());
    if (format === undefined) throw new SqlError(`unsupported format: ${this.#token.text}`);
    this.#at += 1;
    return format;
  }

  #select(): Select {
    this.#demandWord('SELECT');
    const items = this.#list(() => this.#item());
    const from = this.#takeWord('FROM') ? this.#from() : null;
    const where = this.#takeWord('WHERE') ? this.#expression() : null;
    const group = this.#takeBy('GROUP') ? this.#list(() => this.#expression()) : [];
    const having = this.#takeWord('HAVING') ? this.#expression() : null;
    const order = this.#takeBy('ORDER')
      ? this.#list(() => ({
          expression: this.#expression(),
          descending: this.#takeWord('DESC') || (this.#takeWord('ASC') && false),
        }))
      : [];
    const limit = this.#takeWord('LIMIT') && !this.#takeWord('ALL') ? this.#whole() : null;
    const offset = this.#takeWord('OFFSET') ? this.#whole() : 0;
    return { items, from, where, group, having, order, limit, offset };
  }

  #takeBy(word: string): boolean {
    if (!this.#takeWord(word)) return false;
    this.#demandWord('BY');
    return true;
  }

  #list<Element>(one: () => Element): Element[] {
    const list = [one()];
    while (this.#takeSymbol(',')) list.push(one());
    return list;
  }

  #item(): Item | '*' {
    if (this.#takeSymbol('*')) return '*';
    const expression = this.#expression();
    return { expression, alias: this.#takeWord('AS') ? this.#name() : expressionText(expression) };
  }

  #from(): string | Select {
    if (!this.#takeSymbol('(')) return this.#name();
    const select = this.#select();
    this.#demandSymbol(')');
    return select;
  }

  #name(): string {
    const { kind, text } = this.#token;
    const isName = kind === 'quoted' || (kind === 'word' && !KEYWORDS.has(text.toUpperCase()));
    if (!isName) throw this.#unexpected('a name');
    return this.#next().text;
  }

  #whole(): number {
    const { kind, text } = this.#token;
    if (kind !== 'number' || !/^\d+$/.test(text)) throw this.#unexpected('a whole number');
    return Number(this.#next().text);
  }

  #expression(): Expression {
    let left = this.#conjunction();
    while (this.#takeWord('OR')) left = operator('or', left, this.#conjunction());
    return left;
  }

  #conjunction(): Expression {
    let left = this.#negation();
    while (this.#takeWord('AND')) left = operator('and', left, this.#negation());
    return left;
  }

  #negation(): Expression {
    return this.#takeWord('NOT') ? operator('not', this.#negation()) : this.#comparison();
  }

  #comparison(): Expression {
    const left = this.#sum();
    const symbol = COMPARISONS.find((one) => this.#takeSymbol(one));
    if (symbol !== undefined) return operator(symbol === '!=' ? '<>' : symbol, left, this.#sum());
    const negated = this.#takeWord('NOT');
    const result = this.#membership(left);
    if (result === null) {
      if (negated) throw this.#unexpected('IN, BETWEEN, LIKE or ILIKE');
      return left;
    }
    return negated ? operator('not', result) : result;
  }

  #membership(left: Expression): Expression | null {
    if (this.#takeWord('IN')) {
      this.#demandSymbol('(');
      const list = this.#list(() => this.#expression());
      this.#demandSymbol(')');
      return operator('in', left, ...list);
    }
    if (this.#takeWord('BETWEEN')) {
      const low = this.#sum();
      this.#demandWord('AND');
      return operator('and', operator('>=', left, low), operator('<=', left, this.#sum()));
    }
    for (const word of ['LIKE', 'ILIKE']) {
      if (this.#takeWord(word)) return operator(word.toLowerCase(), left, this.#sum());
    }
    return null;
  }

  #sum(): Expression {
    let left = this.#product();
    for (;;) {
      const symbol = ['+', '-'].find((one) => this.#takeSymbol(one));
      if (symbol === undefined) return left;
      left = operator(symbol, left, this.#product());
    }
  }

  #product(): Expression {
    let left = this.#signed();
    for (;;) {
      const symbol = ['*', '/', '%'].find((one) => this.#takeSymbol(one));
      if (symbol === undefined) return left;
      left = operator(symbol, left, this.#signed());
    }
  }

  #signed(): Expression {
    return this.#takeSymbol('-') ? operator('negate', this.#signed()) : this.#primary();
  }

  #primary(): Expression {
    const { kind, text } = this.#token;
    if (kind === 'number') return { kind, text: this.#next().text };
    if (kind === 'string') return { kind, value: this.#next().text };
    if (this.#takeSymbol('(')) {
      const expression = this.#expression();
      this.#demandSymbol(')');
      return expression;
    }
    if (this.#isWord('TRUE') || this.#isWord('FALSE')) {
      return { kind: 'boolean', value: this.#next().text.toUpperCase() === 'TRUE' };
    }
    if (this.#takeWord('INTERVAL')) return this.#interval();
    if (this.#isWord('CASE') || this.#isWord('NULL')) {
      throw new SqlError(`unsupported expression type: ${text.toUpperCase()}`);
    }
    const name = this.#name();
    return this.#takeSymbol('(') ? this.#call(name) : { kind: 'name', name };
  }

  #interval(): Expression {
    const { kind, text: count } = this.#next();
    if (kind !== 'string' || !/^\d+$/.test(count)) throw new SqlError("expected INTERVAL '<n>' <unit>");
    const unit = this.#next().text.toUpperCase();
    if (!UNITS.includes(unit)) throw new SqlError(`unsupported interval: ${unit}`);
    return { kind: 'interval', count: Number(count), unit };
  }

  #call(name: string): Expression {
    const [distinct, first] = this.#operands(name);
    if (!this.#takeSymbol('(')) return { kind: 'call', name, parameters: [], operands: first, distinct };
    const [isDistinct, operands] = this.#operands(name);
    return { kind: 'call', name, parameters: first, operands, distinct: isDistinct };
  }

  /** The operands of a call, read after its opening bracket. */
  #operands(name: string): [distinct: boolean, operands: Expression[]] {
    if (this.#takeSymbol(')')) return [false, []];
    const distinct = this.#takeWord('DISTINCT');
    // `position(needle IN haystack)` has a form of its own.
    if (name.toLowerCase() === 'position') {
      const needle = this.#sum();
      this.#demandWord('IN');
      const haystack = this.#sum();
      this.#demandSymbol(')');
      return [distinct, [needle, haystack]];
    }
    const operands = this.#list(() => this.#expression());
    this.#demandSymbol(')');
    return [distinct, operands];
  }
}

function operator(name: string, ...operands: Expression[]): Expression {
  return { kind: 'operator', operator: name, operands };
}
