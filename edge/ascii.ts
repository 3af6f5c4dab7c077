import type { LoadFnOutput } from 'node:module';

/**
 * The same script with an escape for each character that isn't ASCII. V8 keeps a script's source while its functions live.
 * If one character needs two bytes, V8 stores every character of the script in two bytes. An escape in `String.raw`, in
 * JSX or after a backslash changes the script's meaning.
 */
export function asAscii(source: LoadFnOutput['source']): string {
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source ?? undefined);
  const escaped = text.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // Converted to bytes and back, because a string that V8 derives from a two-byte string also has two bytes a character.
  return Buffer.from(escaped, 'latin1').toString('latin1');
}
