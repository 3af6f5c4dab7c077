/**
 * Characters that a reader can't see, or that change the order of the visible ones: unpaired surrogates (which UTF-8
 * and PostgreSQL can't hold), control characters, line separators, zero-width and blank characters, bidirectional
 * controls and tags. Source: Unicode, UTS #39 (identifiers) and UAX #9 (bidirectional text).
 */
const HIDDEN =
  /[\p{Cs}\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u00ad\u115f\u1160\u180e\u200b-\u200d\u2060-\u206f\u2800\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]|\u034f|\u17b4|\u17b5/u;
const HIDDEN_RUNS = new RegExp(`(?:${HIDDEN.source})+`, 'gu');

/** Why a text that a person entered can't be shown as it is; `null`: it can. */
export function textProblem(text: string): string | null {
  if (!text.isWellFormed()) return 'must be well-formed Unicode, without half a surrogate pair';
  if (HIDDEN.test(text)) return 'must not contain control, zero-width or bidirectional characters';
  return text.trim() === '' ? 'must not be empty, or only spaces' : null;
}

/** Replaces each run of hidden characters by a space. For text from elsewhere that is only recorded or shown. */
export function visibleText(text: string): string {
  return text.toWellFormed().replace(HIDDEN_RUNS, ' ');
}

/** JSON for a `jsonb` column, which can hold neither NUL nor unpaired surrogates. */
export function storableJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' ? member.toWellFormed().replaceAll('\0', '\ufffd') : member,
  );
}
