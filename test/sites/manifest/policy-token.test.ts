import { expect, test } from 'vitest';
import { policyTokens } from '../../../sites/manifest/policy/policy-token.ts';

test('the token of a policy script is the same at every start, and differs for each secret, client and site', () => {
  const acme = { client: 'acme', site: 'shop' };
  const tokenOf = policyTokens('one');
  expect(tokenOf(acme)).toMatch(/^[0-9a-f]{32}$/);
  expect(policyTokens('one')(acme)).toBe(tokenOf(acme));
  const others = [
    tokenOf({ ...acme, site: 'blog' }),
    tokenOf({ ...acme, client: 'other' }),
    policyTokens('two')(acme),
  ];
  expect(new Set([tokenOf(acme), ...others]).size).toBe(4);
});
