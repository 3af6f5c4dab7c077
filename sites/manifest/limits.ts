import { Lexer } from 'yaml';
import type { Problem } from './problem.ts';

/** The largest text of a manifest. */
export const MAX_BYTES = 256 * 1024;
/** The most unquoted keys, values and items, counted before parsing. The largest valid manifest has less than half. */
const MAX_VALUES = 2_000;
/** The maximum of tokens without space and comments: `:`, `-`, `,`, brackets, texts (also unquoted), document ends. */
const MAX_MARKS = 8_000;
const TOO_MANY_MARKS = `has more than ${MAX_MARKS} YAML marks (dashes, colons, commas, brackets, quotes, ends of documents): remove those that are not needed`;
/** Generous: a manifest has four levels. */
const MAX_FLOW_DEPTH = 16;
const MAX_INDENT = 64;
const MAX_ITEMS_OPENED_ON_A_LINE = 8;

const SPACE_OR_COMMENT = /^(?:\s|#)/;

/** The lexer emits this token before the text of a scalar. */
const SCALAR_FOLLOWS = '\u001f';

/**
 * Refuses text that is expensive to parse: large texts, too many values (the time to parse them grows with their
 * square), aliases (a few lines expand to gigabytes) and deep nesting (it overflows the stack of the composer). It uses
 * only the lexer, which isn't recursive, and stops at the first violation.
 */
export function refuseHostileYaml(text: string): Problem | null {
  if (Buffer.byteLength(text) > MAX_BYTES)
    return { path: '', message: `is larger than ${MAX_BYTES / 1024} KiB` };
  let line = 1;
  let depth = 0;
  let opened = 0;
  let scalar = false;
  let values = 0;
  let marks = 0;
  for (const token of new Lexer().lex(text)) {
    const first = scalar ? '' : token[0];
    scalar = token === SCALAR_FOLLOWS;
    if (scalar) values += 1;
    else if (!SPACE_OR_COMMENT.test(token)) marks += 1;
    if (values > MAX_VALUES) {
      const message = `has more than ${MAX_VALUES} keys and values: remove those that are not needed`;
      return { path: '', line, message };
    }
    if (marks > MAX_MARKS) return { path: '', line, message: TOO_MANY_MARKS };
    if (first === '&' || first === '*')
      return { path: '', line, message: 'anchors and aliases are not allowed' };
    if (first === '!') return { path: '', line, message: 'tags are not allowed' };
    if (token === '[' || token === '{') depth += 1;
    else if (token === ']' || token === '}') depth -= 1;
    else if (token === '-' || token === '?') opened += 1;
    const tooDeep = depth > MAX_FLOW_DEPTH || opened > MAX_ITEMS_OPENED_ON_A_LINE;
    if (tooDeep || (/^ +$/.test(token) && token.length > MAX_INDENT)) {
      return { path: '', line, message: 'is nested too deeply' };
    }
    const breaks = token.split('\n').length - 1;
    if (breaks > 0) {
      line += breaks;
      opened = 0;
    }
  }
  return null;
}
