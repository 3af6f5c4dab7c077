/**
 * Characters that a reader can't see, or that change the order of the visible ones: unpaired surrogates (which UTF-8
 * and PostgreSQL can't hold), control characters, line separators, zero-width and blank characters, bidirectional
 * controls and tags. Source: Unicode, UTS #39 (identifiers) and UAX #9 (bidirectional text).
 */
const HIDDEN =
  /[\p{Cs}\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u00ad\u115f\u1160\u180e\u200b-\u200d\u2060-\u206f\u2800\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]|\u034f|\u17b4|\u17b5/u;
const EACH_HIDDEN = new RegExp(HIDDEN.source, 'gu');
const HIDDEN_RUNS = new RegExp(`(?:${HIDDEN.source})+`, 'gu');
const LAYOUT = new Set(['\n', '\t']);

/** Why a text that a person entered can't be shown as it is; `null`: it can. */
export function textProblem(text: string): string | null {
  if (!text.isWellFormed()) return 'must be well-formed Unicode, without half a surrogate pair';
  if (HIDDEN.test(text)) return 'must not contain control, zero-width or bidirectional characters';
  return text.trim() === '' ? 'must not be empty, or only spaces' : null;
}

/** Replaces each run of hidden characters by a space. For text from elsewhere that is only recorded or shown. */
export function replaceHidden(text: string): string {
  return text.toWellFormed().replace(HIDDEN_RUNS, ' ');
}

/**
 * Escapes hidden characters, for example as `\u001b`: a terminal would obey some of them. For one line of text from
 * elsewhere (git, a file name, a server).
 */
export function escapeHidden(text: string): string {
  return text.replace(EACH_HIDDEN, escaped);
}

/** `escapeHidden` in all strings of a value. Keeps line breaks and tabs, except in keys. */
export function escapeHiddenIn<Value>(value: Value): Value {
  return convert(value) as Value; // The same shape, with other texts in it.
}

function convert(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replace(EACH_HIDDEN, (character) =>
      LAYOUT.has(character) ? character : escaped(character),
    );
  }
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [escapeHidden(key), convert(inner)]));
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16).padStart(4, '0');
  return code > 0xffff ? `\\u{${hex}}` : `\\u${hex}`;
}

/** JSON for a `jsonb` column, which can hold neither NUL nor unpaired surrogates. */
export function storableJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' ? member.toWellFormed().replaceAll('\0', '\ufffd') : member,
  );
}

/** `1 change`, `2 changes`; `counted(1, 'change is', 'changes are')`: `1 change is`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
