import { describe, expect, test } from 'vitest';
import { setBounded } from '../../../edge/base/bounded-map.ts';

describe('setBounded', () => {
  test.each([
    ['keeps all entries up to the limit', ['a', 'b'], ['a', 'b']],
    ['drops the oldest entry beyond the limit', ['a', 'b', 'c'], ['b', 'c']],
    ['drops nothing for a key that the map has', ['a', 'b', 'b'], ['a', 'b']],
    ['keeps an entry that was set again', ['a', 'b', 'a', 'c'], ['a', 'c']],
  ])('%s', (_name, keys, kept) => {
    const map = new Map<string, number>();
    for (const [index, key] of keys.entries()) setBounded(map, 2, key, index);
    expect([...map.keys()]).toEqual(kept);
  });

  test('a key that is set again has its new value', () => {
    const map = new Map([['a', 1]]);
    setBounded(map, 1, 'a', 2);
    expect([...map]).toEqual([['a', 2]]);
  });

  test('a deleted entry makes room', () => {
    const map = new Map([
      ['a', 1],
      ['b', 2],
    ]);
    map.delete('b');
    setBounded(map, 2, 'c', 3);
    expect([...map.keys()]).toEqual(['a', 'c']);
  });
});
