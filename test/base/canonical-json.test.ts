import { expect, test } from 'vitest';
import { canonicalJson } from '../../base/canonical-json.ts';

test.each([
  [{ b: 1, a: { d: [2, 1], c: null } }, '{"a":{"c":null,"d":[2,1]},"b":1}'],
  [{ a: undefined, b: [undefined] }, '{"b":[null]}'],
  ['text', '"text"'],
  // In every JavaScript object, names that are integers come first.
  [{ b: 1, 10: 2, 9: { ['__proto__']: 1, _: 2 } }, '{"9":{"_":2,"__proto__":1},"10":2,"b":1}'],
  [
    { at: new Date(0), own: { toJSON: (key: string) => ({ b: key, a: [1, undefined] }) } },
    '{"at":"1970-01-01T00:00:00.000Z","own":{"a":[1,null],"b":"own"}}',
  ],
])('%j becomes %s', (value, text) => {
  expect(canonicalJson(value)).toBe(text);
});
