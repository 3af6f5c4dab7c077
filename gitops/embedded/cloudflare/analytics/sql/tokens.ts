/** The query is refused. The API answers 422 with this message as text. */
export class SqlError extends Error {
  override name = 'SqlError';
}

export interface Token {
  /** `word`: a name or a keyword. `quoted`: a name in quotes. `end`: what follows the last token. */
  readonly kind: 'word' | 'quoted' | 'number' | 'string' | 'symbol' | 'end';
  readonly text: string;
}

const PATTERN =
  /\s+|--[^\n]*|(?<word>[A-Za-z_]\w*)|(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|'(?<string>(?:[^'\\]|\\.|'')*)'|"(?<quoted>[^"]+)"|`(?<ticked>[^`]+)`|(?<symbol><=|>=|<>|!=|[-+*/%=<>(),.])/y;

/** Splits a query. Throws `SqlError` at what is no part of the dialect. */
export function sqlTokens(query: string): Token[] {
  const tokens: Token[] = [];
  PATTERN.lastIndex = 0;
  while (PATTERN.lastIndex < query.length) {
    const start = PATTERN.lastIndex;
    const groups = PATTERN.exec(query)?.groups;
    if (groups === undefined) throw new SqlError(`unexpected text at: ${query.slice(start, start + 20)}`);
    const { word, number, string, quoted = groups.ticked, symbol } = groups;
    if (word !== undefined) tokens.push({ kind: 'word', text: word });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (string !== undefined) tokens.push({ kind: 'string', text: unescaped(string) });
    else if (quoted !== undefined) tokens.push({ kind: 'quoted', text: quoted });
    else if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol });
  }
  return [...tokens, { kind: 'end', text: 'end of query' }];
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '0': '\0' };

function unescaped(text: string): string {
  return text.replace(/''|\\(.)/gs, (whole, escaped: string | undefined) =>
    escaped === undefined ? whole.slice(1) : (ESCAPES[escaped] ?? escaped),
  );
}
