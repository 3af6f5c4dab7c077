import { expect, test } from 'vitest';
import { equalSecrets } from '../../../base/http/equal-secrets.ts';

test.each([
  ['a secret', 'a secret', true],
  ['a secret', 'a secreT', false],
  ['a secret', 'a longer secret', false],
  ['a secret', '', false],
])('“%s” equals “%s”: $2', (one, other, expected) => {
  expect(equalSecrets(one, other)).toBe(expected);
});
