import { expect, test } from 'vitest';
import { cursorOf, positionOf } from '../../../../management/containers/list/cursor.ts';

test.each([
  ['-createdAt', 'createdAt', '17', '17'],
  ['name', 'name', 'acme', '17'],
  // The container's name is the same as its `seq`.
  ['name', 'name', '17', '17'],
] as const)('a cursor is read back as its position: %s, %s, %s, %s', (sort, key, text, seq) => {
  const position = { key: text, seq };
  const order = { key, isDescending: sort.startsWith('-') };
  expect(positionOf(sort, order, cursorOf(sort, order, position))).toEqual(position);
});
