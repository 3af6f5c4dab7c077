import { expect, test } from 'vitest';
import { nameWarnings, neutralId } from '../../../../management/containers/names/neutral-name.ts';

const zone = { host: 'tag-1', edgeDomain: 'example.net' };
const warningsOf = (name: string, domains: string[], siteId: string) => {
  const hostnames = { edge: `${siteId}.example.net`, origin: 'o.example.net', preview: 'p.example.net' };
  return nameWarnings({ name, domains }, { siteId, hostnames }, zone);
};

test.each([
  ['Acme', 'acme'],
  ['Acme Ads', 'acme-ads'],
  // These are reserved, so they get a random suffix later. With it, no list names them.
  ['Metrics', 'metrics'],
  ['Tracking', 'tracking'],
  ['Analytics', 'analytics'],
])('%s gives the id %s', (name, id) => {
  expect(neutralId({ name, domains: ['pots.example'] }, zone)).toBe(id);
  expect(warningsOf(name, ['pots.example'], id)).toEqual([]);
});

test.each([
  ['Ads', ['acme.example'], 'acme', 'EasyList', 'ads'],
  ['Ads', ['www.xn--mbel-gro-xya6t.example'], 'moebel-gross', 'EasyList', 'ads'],
  ['PROMO', ['www.shop.acme.co.uk'], 'acme', 'EasyList', 'promo'],
  ['Piwik GmbH', ['acme.example', 'other.example'], 'acme', 'EasyPrivacy', 'piwik-*'],
  // The domain's own label is on a list, or reserved.
  ['Banner', ['banner.example'], 'banner-shop', 'EasyList', 'banner'],
  ['sGTM', ['login.example'], 'login-shop', 'EasyPrivacy', 'sgtm'],
  ['Sgtm', ['piwik.example'], 'shop', 'EasyPrivacy', 'sgtm'],
])('%s for %j gives the id %s, and a warning says why', (name, domains, id, list, label) => {
  expect(neutralId({ name, domains }, zone)).toBe(id);
  const [warning, ...others] = warningsOf(name, domains, id);
  expect(others).toEqual([]);
  expect(warning).toEqual({
    host: `${id}.example.net`,
    detail: expect.stringMatching(
      `^${list} blocks requests to hosts that begin with “${label.replace('*', '\\*')}\\.”.* made from “${id}” instead`,
    ),
  });
  // A neutral id that was taken has a suffix.
  expect(warningsOf(name, domains, `${id}-abcde`)).toHaveLength(1);
});

test('a site with the blocked name, from an older release, gets no warning that another name is used', () => {
  expect(warningsOf('Ads', ['acme.example'], 'ads')).toEqual([]);
});
