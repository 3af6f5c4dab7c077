import { expect, test } from 'vitest';
import { visible, visibleTexts } from '../../../gitops/base/visible.ts';

test.each([
  ['plain text, Ünïcödé 👍', 'plain text, Ünïcödé 👍'],
  ['\x1b[31mred', '\\u001b[31mred'],
  ['two\nlines\tand\r', 'two\\u000alines\\u0009and\\u000d'],
  ['\u009b2J\u202egnp.exe', '\\u009b2J\\u202egnp.exe'],
])('shows %j as %s', (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test('shows all texts of a value, and keeps line breaks and tabs', () => {
  const value = { 'a\x1b': ['x\x1b\n\ty', 1, null, true], b: { c: '\x07' } };
  expect(visibleTexts(value)).toEqual({
    'a\\u001b': ['x\\u001b\n\ty', 1, null, true],
    b: { c: '\\u0007' },
  });
});
