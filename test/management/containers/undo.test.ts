import { expect, test } from 'vitest';
import { undo } from '../../../management/containers/history/undo.ts';

const domains = (...names: string[]) => names.map((domain) => ({ domain, tag: 'x' }));

test.each<[string, unknown, unknown, unknown, unknown, string[]]>([
  ['a value', { a: 2, b: 9 }, { a: 1, b: 1 }, { a: 2, b: 1 }, { a: 1, b: 9 }, []],
  ['what is undone already', { a: 1 }, { a: 1 }, { a: 2 }, { a: 1 }, []],
  ['a value that was changed again', { a: 3 }, { a: 1 }, { a: 2 }, { a: 3 }, ['a']],
  [
    'a deep conflict',
    { a: { b: 3, c: 2 } },
    { a: { b: 1, c: 1 } },
    { a: { b: 2, c: 2 } },
    { a: { b: 3, c: 1 } },
    ['a.b'],
  ],
  ['a member that was added', { a: 1, b: 2 }, { a: 1 }, { a: 1, b: 2 }, { a: 1 }, []],
  ['a member that was removed', {}, { a: 1 }, {}, { a: 1 }, []],
  [
    'an entry that was added',
    { d: domains('a', 'b', 'c') },
    { d: domains('a') },
    { d: domains('a', 'b') },
    { d: domains('a', 'c') },
    [],
  ],
  [
    'an entry that was removed',
    { d: domains('b', 'c') },
    { d: domains('a', 'b') },
    { d: domains('b') },
    { d: domains('b', 'c', 'a') },
    [],
  ],
  [
    'an order',
    { d: domains('b', 'a') },
    { d: domains('a', 'b') },
    { d: domains('b', 'a') },
    { d: domains('a', 'b') },
    [],
  ],
  [
    'a plain list that was changed again',
    { d: ['x', 'z'] },
    { d: [] },
    { d: ['x'] },
    { d: ['x', 'z'] },
    ['d'],
  ],
  [
    'an entry that was changed again',
    { d: [{ domain: 'a', tag: 'z' }] },
    { d: [{ domain: 'a', tag: 'x' }] },
    { d: [{ domain: 'a', tag: 'y' }] },
    { d: [{ domain: 'a', tag: 'z' }] },
    ['d[a].tag'],
  ],
])('undoing %s has the conflicts $5', (_, current, before, after, value, conflicts) => {
  expect(undo(current, before, after)).toEqual({ value, conflicts });
});
