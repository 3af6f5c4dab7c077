/** Control characters, and those that change the direction of text: a terminal would obey them. */
const HIDDEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const LAYOUT = new Set(['\n', '\t']);

/**
 * Escapes hidden characters, for example as `\u001b`. For one line of text from elsewhere (git, a file name, a server).
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, escaped);
}

/** Escapes hidden characters in all strings of a value. Keeps line breaks and tabs, except in keys. */
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
