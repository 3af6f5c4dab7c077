/**
 * The same script with escapes for all that isn't ASCII: V8 keeps the source of a module, with two bytes for each character
 * if a single one needs them. Not for a script that has such characters in `String.raw`.
 */
export function asAscii(source: string | ArrayBuffer | ArrayBufferView | null | undefined): string {
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source ?? undefined);
  const escaped = text.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // Through bytes, because a string that is made of one with two bytes each has two itself.
  return Buffer.from(escaped, 'latin1').toString('latin1');
}
