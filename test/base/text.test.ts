import { expect, test } from 'vitest';
import {
  counted,
  escapeHidden,
  escapeHiddenIn,
  replaceHidden,
  storableJson,
  textProblem,
} from '../../base/text.ts';

test.each([
  'Acme Shop',
  'Œuvre – „Größe“ №1 & <Co>',
  'デパート 百貨店 متجر חנות',
  'Café ❤️ 🛒',
  'a'.repeat(120),
])('accepts %s', (text) => {
  expect([textProblem(text), replaceHidden(text)]).toEqual([null, text]);
});

test.each([
  ['the first half of a pair', 'a\ud800b', /well-formed/, 'a\ufffdb'],
  ['the second half of a pair', '\udc00', /well-formed/, '\ufffd'],
  ['NUL', 'a\0b', /control/, 'a b'],
  ['a line break', 'a\nb', /control/, 'a b'],
  ['two line breaks', 'a\r\nb', /control/, 'a b'],
  ['an escape', 'a\u001b[31mb', /control/, 'a [31mb'],
  ['a C1 control', 'a\u009bb', /control/, 'a b'],
  ['a line separator', 'a\u2028b', /control/, 'a b'],
  ['a zero-width space', 'a\u200bb', /zero-width/, 'a b'],
  ['a zero-width joiner', 'a\u200db', /zero-width/, 'a b'],
  ['a byte order mark', '\ufeffa', /zero-width/, ' a'],
  ['a right-to-left override', 'a\u202eb', /bidi/, 'a b'],
  ['a right-to-left mark', 'a\u200fb', /bidi/, 'a b'],
  ['an isolate', '\u2066a', /bidi/, ' a'],
  ['a tag character', 'a\u{e0041}', /zero-width/, 'a '],
  ['a Hangul filler', '\u3164', /zero-width/, ' '],
])('refuses %s', (_what, text, problem, visible) => {
  expect(textProblem(text)).toMatch(problem);
  expect(replaceHidden(text)).toBe(visible);
});

test.each(['', ' ', '\u00a0\u2003 '])('refuses a text of spaces alone', (text) => {
  expect(textProblem(text)).toMatch(/only spaces/);
});

test('makes JSON that PostgreSQL can hold', () => {
  const value = { a: ['x\0y', 'z\ud800'], b: 1, c: null };
  expect(JSON.parse(storableJson(value))).toEqual({ a: ['x\ufffdy', 'z\ufffd'], b: 1, c: null });
});

test.each([
  ['plain text, Ünïcödé 👍', 'plain text, Ünïcödé 👍'],
  ['\x1b[31mred', '\\u001b[31mred'],
  ['two\nlines\tand\r', 'two\\u000alines\\u0009and\\u000d'],
  ['\u009b2J\u202egnp.exe', '\\u009b2J\\u202egnp.exe'],
  ['zero\u200bwidth\ufeff', 'zero\\u200bwidth\\ufeff'],
  ['tag \u{e0041}, half \ud800', 'tag \\u{e0041}, half \\ud800'],
])('shows %j as %s', (text, shown) => {
  expect(escapeHidden(text)).toBe(shown);
});

test('escapes all texts of a value, and keeps line breaks and tabs', () => {
  const value = { 'a\x1b': ['x\x1b\n\ty', 1, null, true], b: { c: '\x07' } };
  expect(escapeHiddenIn(value)).toEqual({
    'a\\u001b': ['x\\u001b\n\ty', 1, null, true],
    b: { c: '\\u0007' },
  });
});

test.each([
  [0, '0 changes are'],
  [1, '1 change is'],
  [2, '2 changes are'],
])('%i is followed by the right singular or plural', (number, expected) => {
  expect(counted(number, 'change is', 'changes are')).toBe(expected);
  expect(counted(number, 'change')).toBe(expected.replace(/ (?:is|are)$/, ''));
});
