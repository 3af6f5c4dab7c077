import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { serialize } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { asAscii } from '../../edge/ascii.ts';

/** True if V8 holds the string with one byte a character: V8 serialises such strings with the tag `"`. */
const hasOneByte = (text: string) => serialize(text).includes('"', 0, 'latin1');

test('a script means the same in ASCII, and V8 holds it in one byte a character', () => {
  const script = `// — a comment
    const größe = 'ö';
    JSON.stringify([größe, \`“\${größe}”\`, 'a–b—c'.replaceAll(/–|—/g, '-'), /^[😀-😂]$/u.test('😁'), '😀'])`;
  const ascii = asAscii(script);
  expect(ascii).toMatch(/^[\0-\x7f]+$/);
  expect(runInNewContext(ascii)).toBe('["ö","“ö”","a-b-c",true,"😀"]');
  expect([hasOneByte(script), hasOneByte(ascii)]).toEqual([false, true]);
});

test('a script may also be given as bytes', () => {
  expect(asAscii(Buffer.from("'é'"))).toBe("'\\u00e9'");
});

test('Miniflare has no characters beyond ASCII where an escape would mean something else', () => {
  const source = readFileSync(createRequire(import.meta.url).resolve('miniflare'), 'utf8');
  const lines = source.split('\n').filter((line) => /[^\0-\x7f]/.test(line));
  expect(lines).not.toEqual([]);
  expect(lines.filter((line) => /\.raw\b|\\[^\0-\x7f]/.test(line))).toEqual([]);
});
