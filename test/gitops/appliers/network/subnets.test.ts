import { expect, test } from 'vitest';
import { formatRange, overlap, parseRange, type Range } from '../../../../gitops/appliers/network/ranges.ts';
import { freeSubnet } from '../../../../gitops/appliers/network/subnets.ts';

function range(text: string): Range {
  const parsed = parseRange(text);
  if (parsed === null) throw new Error(`${text} is not a range`);
  return parsed;
}

test.each([
  ['nothing is taken', ['10.1.0.0/16'], [], '10.1.0.0/26'],
  ['the first ones are taken', ['10.1.0.0/16'], ['10.1.0.0/26', '10.1.0.64/26'], '10.1.0.128/26'],
  ['there is a gap', ['10.1.0.0/16'], ['10.1.0.0/26', '10.1.0.128/26'], '10.1.0.64/26'],
  ['one address of the first is taken', ['10.1.0.0/16'], ['10.1.0.7'], '10.1.0.64/26'],
  ['a larger network covers the whole range', ['10.1.0.0/16'], ['10.0.0.0/15', '10.1.0.0/26'], null],
  [
    'taken networks overlap, in any order',
    ['10.1.0.0/16'],
    ['10.1.1.0/24', '10.1.0.0/24', '10.1.0.0/23'],
    '10.1.2.0/26',
  ],
  ['the first range is full', ['10.1.0.0/26', '10.2.0.0/24'], ['10.1.0.0/26'], '10.2.0.0/26'],
  ['all are full', ['10.1.0.0/25'], ['10.1.0.0/26', '10.1.0.64/26'], null],
  ['the range is high', ['240.0.0.0/8'], ['240.0.0.0/9'], '240.128.0.0/26'],
] as const)('the free subnet, if %s, is $3', (_what, ranges, taken, expected) => {
  const found = freeSubnet(ranges.map(range), taken.map(range));
  expect(found === null ? null : formatRange(found)).toBe(expected);
});

test('a /16 has 1,024 subnets without overlap, and no further one', () => {
  const taken: Range[] = [];
  for (let next = freeSubnet([range('10.213.0.0/16')], taken); next !== null; ) {
    expect(taken.some((other) => next !== null && overlap(next, other))).toBe(false);
    taken.push(next);
    next = freeSubnet([range('10.213.0.0/16')], taken);
  }
  expect(taken).toHaveLength(1_024);
});

test.each(['10.0.0.0/33', '10.0.0.256', 'fd00::/8', 'here', ''])('%j is no range', (text) => {
  expect(parseRange(text)).toBeNull();
});

test('a range is normalised to its first address', () => {
  expect(formatRange(range('10.1.2.3/16'))).toBe('10.1.0.0/16');
});
