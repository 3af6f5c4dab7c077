import { expect, test } from 'vitest';
import { canonicalJson } from '../../../gitops/base/canonical-json.ts';

test.each([
  [{ b: 1, a: { d: [2, 1], c: null } }, '{"a":{"c":null,"d":[2,1]},"b":1}'],
  [{ a: undefined, b: [undefined] }, '{"b":[null]}'],
  ['text', '"text"'],
])('%j', (value, text) => {
  expect(canonicalJson(value)).toBe(text);
});
