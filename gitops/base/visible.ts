/** Control characters, and those that change the direction of text: a terminal would obey them. */
const HIDDEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const LAYOUT = new Set(['\n', '\t']);

/** One line of text of others (git, a file's name, a server), with escapes such as `\u001b` for hidden characters. */
export function visible(text: string): string {
  return text.replace(HIDDEN, escaped);
}

/** The same for all texts in a value, keys included; line breaks and tabs stay. */
export function visibleTexts<Value>(value: Value): Value {
  return convert(value) as Value; // The same shape, with other texts in it.
}

function convert(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replace(HIDDEN, (character) => (LAYOUT.has(character) ? character : escaped(character)));
  }
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [visible(key), convert(inner)]));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
