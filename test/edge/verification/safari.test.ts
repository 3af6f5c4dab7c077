import { describe, expect, test } from 'vitest';
import { checkCookieLifetime } from '../../../edge/verification/checks/cookie-lifetime.ts';
import type { HostReport, NameAnswer, SiteDescription } from '../../../edge/verification/contract.ts';
import { safariVerdict } from '../../../edge/verification/safari.ts';
import { describeSite } from '../../../sites/manifest/description.ts';
import { loadedManifest } from '../../support/manifest.ts';

const answer = (name: string, change: Partial<NameAnswer> = {}): NameAnswer => ({
  name,
  kind: 'page',
  addresses: ['203.0.113.7'],
  alias: null,
  registrable: name.split('.').slice(-2).join('.'),
  aliasRegistrable: null,
  expected: [],
  problem: null,
  ...change,
});
const shop = answer('acme.example');
const at = (...addresses: string[]) => answer('metrics.acme.example', { addresses });
const aliased = (alias: string) =>
  answer('metrics.acme.example', { alias, aliasRegistrable: alias.split('.').slice(-2).join('.') });

describe('Safari does not limit cookies', () => {
  test.each<[string, NameAnswer, NameAnswer]>([
    ['of the page’s own host', shop, shop],
    ['of a host in the same /16', shop, at('203.0.200.9')],
    [
      'of a CNAME within the site, at any address',
      shop,
      { ...aliased('tags.acme.example'), addresses: ['9.9.9.9'] },
    ],
    [
      'of a host with the same CNAME as the page’s own host',
      answer('acme.example', { alias: 'cdn.host.example', aliasRegistrable: 'host.example' }),
      { ...aliased('cdn.host.example'), addresses: ['9.9.9.9'] },
    ],
    [
      'of a host in the same /64',
      answer('acme.example', { addresses: ['2001:db8:1:2::7'] }),
      at('2001:db8:1:2:ffff:ffff:ffff:ffff'),
    ],
    [
      'of a host with IPv4 and IPv6, each in the same network',
      answer('acme.example', { addresses: ['203.0.113.7', '2001:db8::7'] }),
      at('203.0.1.1', '2001:db8:0:0:1::'),
    ],
  ])('%s', (_what, page, tag) => {
    expect(safariVerdict(page, tag)).toBeNull();
  });
});

describe('Safari limits to 7 days the cookies', () => {
  test.each<[string, NameAnswer, NameAnswer, RegExp]>([
    [
      'of another site',
      shop,
      answer('acme.tags.example.net'),
      /is not part of acme\.example, so only scripts can write its cookies/,
    ],
    [
      'of a CNAME to another site',
      shop,
      aliased('acme.tags.example.net'),
      /is a CNAME to acme\.tags\.example\.net/,
    ],
    [
      'of a host whose CNAME differs from that of the page’s own host',
      answer('acme.example', { alias: 'a.host.example', aliasRegistrable: 'host.example' }),
      aliased('b.host.example'),
      /is a CNAME to b\.host\.example/,
    ],
    ['of a host one bit outside the /16', shop, at('203.1.113.7'), /fewer than 16 leading bits/],
    [
      'of a host one bit outside the /64',
      answer('acme.example', { addresses: ['2001:db8:1:2::7'] }),
      at('2001:db8:1:3::7'),
      /fewer than 64 leading bits/,
    ],
    [
      'of a host with one of several addresses outside the /16',
      shop,
      at('203.0.1.1', '198.51.100.1'),
      /\(198\.51\.100\.1\)/,
    ],
    [
      'of a host with IPv6 only, for a page with IPv4 only',
      shop,
      at('2001:db8::1'),
      /don’t have the same kinds of addresses/,
    ],
    [
      'where only the tags have IPv6',
      shop,
      at('203.0.113.8', '2001:db8::1'),
      /don’t have the same kinds of addresses/,
    ],
    ['of a name that does not resolve', shop, at(), /doesn’t resolve/],
  ])('%s', (_what, page, tag, reason) => {
    expect(safariVerdict(page, tag)).toMatch(reason);
  });
});

describe('the verdict of a domain', () => {
  const edge = answer('acme.tags.example.net', { kind: 'edge', registrable: 'example.net' });
  const reportOf = (site: SiteDescription): HostReport => ({
    host: 'tag-1',
    site,
    config: { id: null, problem: null },
    previews: { count: 1, problem: null },
    names: [],
    certificates: [],
    arrivals: [],
  });
  const verdict = (names: NameAnswer[], restoresBy?: 'id' | 'master_cookie') => {
    const domains = [{ domain: 'acme.example', token: 'ct', webTagId: 'GTM-A', active: true }];
    const site = {
      siteId: 'acme',
      edge: 'https://acme.tags.example.net',
      origin: 'https://o.example.net',
      preview: 'https://p.example.net',
      customDomains: [],
      loaderToken: 'lt',
      domains,
      proxyPaths: [],
      restoresBy,
      masterCookie: restoresBy === 'master_cookie' ? 'shop_id' : undefined,
    };
    const host = { ...reportOf(site), names: [edge, ...names] };
    const visit = () => Promise.reject(new Error('this check sends no request'));
    const [found] = checkCookieLifetime({
      site,
      host,
      hostProblem: null,
      visit,
      now: 0,
      scriptsByPlace: false,
    });
    return found;
  };

  test('is for the edge hostname if there is no custom domain, and advises one', () => {
    expect(verdict([shop])).toMatchObject({
      subject: 'acme.example',
      status: 'passed',
      detail: expect.stringMatching(/^7 days, because acme\.tags\.example\.net is not part of acme\.example/),
      fix: expect.stringContaining('Add a custom domain under acme.example'),
    });
  });

  test('says how long restoration helps: as long as the browser keeps the cookie by which the profile is found', () => {
    expect(verdict([shop], 'id')).toMatchObject({
      detail: expect.stringContaining('restoration ends with the cookies'),
      fix: expect.stringContaining('masterCookie'),
    });
    const own = verdict([shop], 'master_cookie');
    expect(own).toMatchObject({ detail: expect.stringMatching(/; restored as long as .* masterCookie$/) });
    expect(own?.fix).not.toContain('masterCookie');
  });

  test('is for the custom domain with the longest cookie lifetime under the same registrable domain', () => {
    const custom = (tag: NameAnswer) => ({ ...tag, kind: 'custom' as const });
    const bad = custom({ ...at('198.51.100.1'), name: 'old.acme.example' });
    expect(verdict([shop, bad])).toMatchObject({
      detail: expect.stringMatching(/^7 days, because old\.acme\.example \(198/),
      fix: expect.stringContaining('Point old.acme.example with an address record'),
    });
    expect(verdict([shop, bad, custom(at('203.0.1.1'))])).toEqual({
      subject: 'acme.example',
      status: 'passed',
      detail: 'full (by metrics.acme.example). A browser may delete cookies sooner without notice.',
      fix: null,
    });
  });

  test.each([
    [undefined, /^full \(by metrics\.acme\.example\)\. A browser/],
    [
      'id',
      /; restoration ends with the cookies, because the visitor’s id is one of them\. A browser may delete/,
    ],
    ['master_cookie', /; restored as long as the browser keeps the site’s own shop_id masterCookie\. A brow/],
  ] as const)('that isn’t limited promises no lifetime, with restoration by %s', (restoresBy, detail) => {
    const own = { ...at('203.0.1.1'), kind: 'custom' as const };
    expect(verdict([shop, own], restoresBy)?.detail).toMatch(detail);
  });

  test('below a prefix also says what restoration depends on, and promises no lifetime', () => {
    const forwarder = { generation: 1, tokenHash: 'a'.repeat(64) };
    const manifest = loadedManifest('acme', 0, {
      features: { cookie_restoration: true },
      modules: { cookie_restoration: { masterCookie: 'shop_id' } },
    });
    const domains = manifest.domains.map((one) => ({ ...one, sameOrigin: { path: '/m3trics1', forwarder } }));
    const addresses = { edgePublicUrl: 'https://{host}', tlsPort: 443 };
    const site = describeSite({ ...manifest, domains }, addresses);
    expect(site).toMatchObject({ restoresBy: 'master_cookie', masterCookie: 'shop_id' });
    const host = { ...reportOf(site), names: [] };
    const context = { site, host, hostProblem: null, visit: () => Promise.reject(), now: 0 };
    const [found] = checkCookieLifetime({ ...context, scriptsByPlace: false });
    expect(found?.detail).toMatch(
      /^full \(below \/m3trics1, .*own shop_id masterCookie\. A browser may delete/,
    );
  });

  test('is skipped if the page’s own name does not resolve', () => {
    expect(verdict([{ ...shop, addresses: [], problem: 'no such name' }])).toMatchObject({
      status: 'skipped',
    });
  });
});
