import { styleText } from 'node:util';
import { expect, test } from 'vitest';
import { short } from '../../../../gitops/cli/output/print.ts';
import { table } from '../../../../gitops/cli/output/table.ts';

const red = (text: string) => styleText('red', text, { validateStream: false });

test.each([
  ['no row', [], ''],
  ['one row', [['a', 'b']], 'a  b\n'],
  [
    'each column as wide as its widest cell',
    [
      ['a', 'bb', 'c'],
      ['aaa', 'b', 'c'],
    ],
    'a    bb  c\naaa  b   c\n',
  ],
  ['rows of different lengths', [['a'], ['aa', 'b']], 'a\naa  b\n'],
  [
    'no spaces at the end',
    [
      ['a', ''],
      ['aa', 'b'],
    ],
    'a\naa  b\n',
  ],
  [
    'colour codes that take no width',
    [
      [red('a'), 'b'],
      ['aa', 'b'],
    ],
    `${red('a')}   b\naa  b\n`,
  ],
])('table: %s', (_what, rows, expected) => {
  expect(table(rows)).toBe(expected);
});

test('short: eight digits, or a dash for no revision', () => {
  expect(short('0123456789abcdef')).toBe('01234567');
  expect(short(null)).toBe('–');
});

test('a line break in a cell starts no new row', () => {
  expect(table([['zz\nother  Ready', 'a\tb']])).toBe('zz\\u000aother  Ready  a\\u0009b\n');
});
