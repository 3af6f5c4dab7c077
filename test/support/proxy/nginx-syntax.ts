/** One directive: its name, its arguments as nginx reads them, and the block after it, if there is one. */
interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  readonly block: readonly Directive[] | null;
}

type Token = { readonly word: string } | { readonly mark: ';' | '{' | '}' };

/**
 * Reads nginx's language as `ngx_conf_read_token` does, but more strictly. These are errors here, because that function
 * has to guess their meaning: a quote in a word, most escapes, a control character, text right after a closing quote.
 */
export function parseNginx(text: string): Directive[] {
  const tokens = [...tokensOf(text)];
  let at = 0;
  function block(nested: boolean): Directive[] {
    const directives: Directive[] = [];
    let words: string[] = [];
    while (at < tokens.length) {
      const token = tokens[at] as Token; // `at` is within the tokens
      at += 1;
      if ('word' in token) {
        words.push(token.word);
        continue;
      }
      if (token.mark === '}') {
        if (!nested || words.length > 0) throw new SyntaxError('unexpected }');
        return directives;
      }
      const [name, ...args] = words;
      if (name === undefined) throw new SyntaxError(`unexpected ${token.mark}`);
      directives.push({ name, args, block: token.mark === '{' ? block(true) : null });
      words = [];
    }
    if (nested || words.length > 0) throw new SyntaxError('unexpected end');
    return directives;
  }
  return block(false);
}

const KINDS = [
  /([ \t\n]+|#[^\n]*)/u,
  /([;{}])/u,
  /"((?:[^"\\\p{Cc}]|\\[.|?1n])*)"(?=[\s;)])/u,
  /'([^'\\\p{Cc}]*)'(?=[\s;)])/u,
  /([^\s"'\\;{}#\p{Cc}]+)/u,
];
const TOKEN = new RegExp(KINDS.map(({ source }) => source).join('|'), 'uy');

function* tokensOf(text: string): Generator<Token> {
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new SyntaxError(`can't be read: ${JSON.stringify(text.slice(at, at + 40))}`);
    const [, , mark, ...words] = match;
    const word = words.find((text) => text !== undefined);
    if (mark === ';' || mark === '{' || mark === '}') yield { mark };
    else if (word !== undefined) yield { word };
  }
}

/**
 * A tree with the number of arguments in place of the arguments. In a table (`geo`, `map`), names are left out, too.
 */
export function shapeOf(directives: readonly Directive[], table = false): unknown[] {
  return directives.map(({ name, args, block }) => [
    table ? '' : name,
    args.length,
    block && shapeOf(block, name === 'geo' || name === 'map'),
  ]);
}
