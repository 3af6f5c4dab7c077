import { expect, test } from 'vitest';
import { refuseBlockedName } from '../../../../management/containers/names/neutral-name.ts';

const zone = { host: 'tag-1', edgeDomain: 'example.net' };
const refusalOf = (name: string, domains: string[] = ['acme.example']) => {
  try {
    refuseBlockedName({ name, domains }, zone);
    return null;
  } catch (error) {
    return error;
  }
};

test.each(['Acme', 'Acme Ads', 'Metrics', 'Tracking', 'Analytics'])('%s is accepted', (name) => {
  // The last three are reserved, so they get a random suffix, and with it no list names them.
  expect(refusalOf(name)).toBeNull();
});

test.each([
  ['Ads', ['acme.example'], 'acme'],
  ['PROMO', ['www.shop.acme.co.uk'], 'acme'],
  ['Piwik GmbH', ['acme.example', 'other.example'], 'acme'],
  // The domain's own label is on a list, or reserved.
  ['Banner', ['banner.example'], 'banner-shop'],
  ['sGTM', ['login.example'], 'login-shop'],
  ['Sgtm', ['piwik.example'], 'shop'],
])('%s for %j is refused, and %s is proposed', (name, domains, proposal) => {
  const refusal = refusalOf(name, domains);
  expect(refusal).toMatchObject({ code: 'blocked_name', status: 422 });
  expect((refusal as { body(id: string): object }).body('id')).toMatchObject({
    proposal,
    errors: [{ path: 'name' }],
    detail: expect.stringContaining(`“${proposal}”`),
  });
  expect(refusalOf(proposal, domains)).toBeNull();
});
