/**
 * The same script with escapes for all that isn't ASCII: V8 keeps the source of a module, with two bytes for each character
 * if a single one needs them. Not for a script that has such characters in `String.raw`.
 */
export function asAscii(source: string | ArrayBuffer | NodeJS.TypedArray | null | undefined): string {
  const text = typeof source === 'string' ? source : Buffer.from(bytesOf(source)).toString();
  const escaped = text.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // Through bytes, because a string that is made of one with two bytes each has two itself.
  return Buffer.from(escaped, 'latin1').toString('latin1');
}

function bytesOf(source: ArrayBuffer | NodeJS.TypedArray | null | undefined): Uint8Array {
  if (source === null || source === undefined) return new Uint8Array();
  return ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
}
