import { expect, test } from 'vitest';
import { fileStem, isCut } from '../../base/file-stem.ts';

test('a short name is its own stem', () => {
  const name = `${'x'.repeat(192)}.example`;
  expect(fileStem(name)).toBe(name);
  expect(isCut(name)).toBe(false);
});

test('a long name is cut to a unique stem, and the stem of that stem is itself', () => {
  const [one, other] = ['a', 'b'].map((end) => fileStem(`${'x'.repeat(240)}.${end}`));
  expect(one).not.toBe(other);
  expect(one).toHaveLength(200);
  expect(isCut(one ?? '')).toBe(true);
  expect(fileStem(one ?? '')).toBe(one);
});
