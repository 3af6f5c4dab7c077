import { describe, expect, test } from 'vitest';
import { blockedHost, blockedPath, describeRule } from '../../../edge/verification/block-lists.ts';
import { checkBlockLists } from '../../../edge/verification/checks/block-lists.ts';

describe('the list that blocks a host, for pages of another domain and of its own', () => {
  test.each([
    ['ads.example.net', 'EasyList', 'EasyList'],
    ['sgtm.acme.example', 'EasyPrivacy', 'EasyPrivacy'],
    ['promo.example.net', 'EasyList', undefined],
    ['piwik-acme.example.net', 'EasyPrivacy', 'EasyPrivacy'],
    ['acme-tracking-pixel.example.net', 'EasyPrivacy', 'EasyPrivacy'],
    ['acme.example.net', undefined, undefined],
    // Only the first label counts, and the whole of it unless the rule has a `*`.
    ['acme.ads.example.net', undefined, undefined],
    ['ads-acme.example.net', undefined, undefined],
    ['metrics.acme.example', undefined, undefined],
  ])('%s: %s, %s', (host, foreign, own) => {
    expect(blockedHost(host, { isOwn: false })?.list).toBe(foreign);
    expect(blockedHost(host, { isOwn: true })?.list).toBe(own);
  });

  test('is named together with the label', () => {
    const rule = blockedHost('ads.example.net', { isOwn: false });
    expect(rule && describeRule(rule)).toBe('EasyList blocks requests to hosts that begin with “ads.”');
  });
});

test.each([
  ['/gtm.js?id=GTM-ABC1234', 'EasyPrivacy'],
  ['/shop/gtm.js', 'EasyPrivacy'],
  ['/gtag/js?id=G-ABC1234', 'EasyPrivacy'],
  ['/g/collect?v=2&tid=G-ABC1234', 'EasyPrivacy'],
  ['/g/collect', null],
  ['/l/lt_4QkYb7pXw2ZrT9mN.js', null],
  ['/data', null],
])('the list that blocks the path %s on every host: %s', (path, list) => {
  expect(blockedPath(path)).toBe(list);
});

describe('the verification', () => {
  const site = (change: object = {}) => ({
    siteId: 'acme',
    edge: 'https://acme.example.net:8443',
    origin: 'https://acme-origin.example.net',
    preview: 'https://acme-preview.example.net',
    customDomains: ['https://tags.acme.example'],
    loaderToken: 'lt',
    domains: [],
    proxyPaths: ['/data'],
    ...change,
  });
  const check = (change: object = {}) =>
    checkBlockLists({
      site: site(change),
      host: null,
      hostProblem: null,
      now: 0,
      scriptsByPlace: false,
      visit: () => Promise.reject(new Error('no visit is needed')),
    });

  test('names Google’s own paths, which are blocked under every hostname', () => {
    const [edge, custom, all] = check();
    expect([edge?.fix, custom?.fix, all?.fix]).toEqual([null, null, null]);
    expect(all?.detail).toContain('/g/collect?v=2');
    expect(all?.detail).not.toContain('/data');
    expect(check({ proxyPaths: ['/shop/gtm.js'] }).at(-1)?.detail).toContain('/shop/gtm.js');
  });

  test('names blocked hosts with advice, and never fails', () => {
    const found = check({
      edge: 'https://ads.example.net',
      customDomains: ['https://sgtm.acme.example', 'https://promo.acme.example'],
    });
    expect(found.map(({ status }) => status)).toEqual(['passed', 'passed', 'passed', 'passed']);
    expect(found.map(({ subject, fix }) => [subject, fix !== null])).toEqual([
      ['ads.example.net', true],
      ['sgtm.acme.example', true],
      // EasyList names it for pages of other domains only.
      ['promo.acme.example', false],
      [null, false],
    ]);
  });
});
