import { describe, expect, test } from 'vitest';
import type { CheckContext } from '../../../edge/verification/check.ts';
import { SITE_CHECKS } from '../../../edge/verification/checks/index.ts';
import type { NameAnswer } from '../../../edge/verification/contract.ts';
import type { SiteVisits, Visit } from '../../../edge/verification/visit.ts';

const EDGE = 'acme.tags.example.net';
const CUSTOM = 'metrics.acme.example';

const name = (host: string, kind: NameAnswer['kind'], change: Partial<NameAnswer> = {}): NameAnswer => ({
  name: host,
  kind,
  addresses: ['203.0.113.7'],
  alias: null,
  registrable: null,
  aliasRegistrable: null,
  expected: ['203.0.113.7'],
  problem: null,
  ...change,
});

function contextOf(custom: Partial<NameAnswer>, visit: SiteVisits): CheckContext {
  const site = {
    siteId: 'acme',
    edge: `https://${EDGE}`,
    origin: 'https://acme-origin.tags.example.net',
    preview: 'https://acme-preview.tags.example.net',
    customDomains: [`https://${CUSTOM}`],
    loaderToken: 'lt',
    domains: [{ domain: 'acme.example', token: 'ct', webTagId: 'GTM-ABC1234', active: true }],
    proxyPaths: [],
  };
  const host = {
    host: 'tag-1',
    site,
    config: { id: null, problem: null },
    previews: { count: 1, problem: null },
    names: [name(EDGE, 'edge'), name(CUSTOM, 'custom', custom)],
    certificates: [],
    arrivals: [],
  };
  return { site, host, hostProblem: null, visit, now: 0, scriptsByPlace: false };
}

const answer = (status: number, type: string, body: object): Visit => ({
  status,
  headers: new Headers({ 'content-type': type }),
  text: JSON.stringify(body),
  problem: null,
});

describe('a custom domain that doesn’t resolve', () => {
  test.each(['loader', 'boot', 'script', 'cors_allowed', 'cors_refused'] as const)(
    'is skipped by %s, which then checks the edge hostname only',
    async (check) => {
      const asked: string[] = [];
      const context = contextOf({ addresses: [], problem: 'no such name' }, async (url) => {
        asked.push(url.hostname);
        return answer(502, 'text/html', {});
      });
      const found = await SITE_CHECKS[check](context);
      expect(asked).toEqual([EDGE]);
      expect(found.map(({ status }) => status)).toEqual(['failed', 'skipped']);
      expect(found.at(-1)).toMatchObject({
        subject: CUSTOM,
        detail: expect.stringMatching(/see the check dns/),
      });
    },
  );
});

describe('a missing script', () => {
  const problem = 'application/problem+json';
  test.each([
    ['the edge answers that the vendor failed', answer(502, problem, { code: 'upstream_failed' }), true],
    ['the edge answers another error', answer(502, problem, { code: 'store_unavailable' }), false],
    ['a proxy in between answers with a page', answer(502, 'text/html', { code: 'upstream_failed' }), false],
  ])('has the remedy to publish the web container, where %s: $2', async (_what, given, vendors) => {
    const found = await SITE_CHECKS.script(contextOf({}, async () => given));
    expect(found.map(({ status }) => status)).toEqual(['failed', 'failed']);
    for (const { fix } of found) expect(/publish that web container/.test(fix ?? '')).toBe(vendors);
  });
});

describe('a script with defaults for some regions', () => {
  const served = async (text: string, scriptsByPlace = false) => {
    const visit: SiteVisits = async () => ({ ...answer(200, 'application/javascript', {}), text });
    return await SITE_CHECKS.script({ ...contextOf({}, visit), scriptsByPlace });
  };
  const REGIONAL = 'var data={"consent":[{"region":["DE","AT"],"ad_storage":"denied"}]}';

  test.each([
    REGIONAL,
    'x=["list",["map","region","US-CA","ad_storage","denied"]]',
    "gtag('consent','default',{ad_storage:'denied',region:['ES','US-AK']})",
    '"vtp_html":"gtag(\\u0027consent\\u0027,{region: [\\u0027DE\\u0027]})"',
    '"vtp_html":"{\\"region\\": [\\"DE\\"]}"',
  ])('passes, and advises how visitors get the defaults of their own region: %s', async (text) => {
    const found = await served(text);
    expect(found.map(({ status }) => status)).toEqual(['passed', 'passed']);
    for (const { detail, fix } of found) {
      expect(detail).toMatch(/it isn’t proven that the vendor answers by the visitor’s place/);
      expect(fix).toMatch(/web container client.*modules\.server_proxy\.tagServingPath.*scriptPath/);
    }
  });

  test('needs no advice where the vendor is known to answer by the stated place', async () => {
    for (const { detail, fix } of await served(REGIONAL, true)) {
      expect([detail, fix]).toEqual([expect.not.stringMatching(/proven/), null]);
    }
  });

  test.each([
    'var a=1',
    '{"region":"region1"}',
    'function region(a){return a.region,"Undefined"}',
    '{"region":"","country":"DE"}',
  ])('is not recognised by other uses of the word “region”: %s', async (text) => {
    for (const { fix } of await served(text)) expect(fix).toBeNull();
  });
});
