import type { LoadFnOutput } from 'node:module';

/**
 * The same script with an escape for each character that isn't ASCII. V8 keeps a script's source as long as its functions,
 * and takes two bytes for each character of it if a single one doesn't fit into one. Scripts with such characters in
 * `String.raw`, in JSX or after a backslash change their meaning.
 */
export function asAscii(source: LoadFnOutput['source']): string {
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source ?? undefined);
  const escaped = text.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // By way of bytes, because what is made of a string with two bytes a character has two itself.
  return Buffer.from(escaped, 'latin1').toString('latin1');
}
