import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
let site: StagedSite;
beforeAll(async () => {
  stage = await startStage('cookie-plugins.ts');
  site = await stage.site({
    features: { setter: true },
    domains: [
      { domain: 'shop.acme.example', cookieDomain: 'acme.example' },
      { domain: 'acme.co.uk', cookieDomain: 'acme.co.uk', active: false },
      { domain: 'box.localhost', cookieDomain: null },
    ],
  });
});
afterAll(() => stage?.close());
afterEach(() => {
  stage.upstream.reply = () => ({});
});

/** Which of the `Set-Cookie` lines of the site's origin reach the client. */
async function arriving(lines: readonly string[], headers: Record<string, string> = {}) {
  stage.upstream.reply = () => ({ status: 204, headers: { 'set-cookie': [...lines], 'x-own': '1' } });
  const answer = await stage.send(site.host, '/g/collect', { headers });
  expect(answer).toMatchObject({ status: 204, headers: { 'x-own': '1' } });
  return answer.headers['set-cookie'] ?? [];
}

describe('a cookie of the tag server', () => {
  test.each([
    ['host-only', 'a=1; Path=/; HttpOnly'],
    ['with an empty Domain, which browsers treat as no Domain,', 'a=1; Domain=; Path=/'],
    ['for the registrable domain', 'a=1; Domain=acme.example'],
    ['with a leading dot', 'a=1; Domain=.acme.example; Path=/'],
    ['in another case', 'a=1; dOMAIN=Acme.EXAMPLE'],
    ['with space around Domain and its value', 'a=1 ;\tDomain\t= acme.example ; Path=/'],
    ['for a subdomain', 'a=1; Domain=shop.acme.example'],
    ['for an inactive domain of the site', 'a=1; Domain=acme.co.uk'],
    ['for a domain without a registrable part', 'a=1; Domain=box.localhost'],
    ['whose value only names a domain', 'a="Domain=evil.example"'],
    ['with a comma, as in a date', 'a=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT'],
  ])('%s passes', async (_name, line) => {
    expect(await arriving([line])).toEqual([line]);
  });

  test.each([
    ['for the zone of all edge hostnames', 'a=1; Domain=edge.test'],
    ['for the edge hostname', 'a=1; Domain=site1.edge.test'],
    ['for another site’s edge hostname', 'a=1; Domain=site2.edge.test'],
    ['for a foreign domain', 'a=1; Domain=evil.example'],
    ['for a domain with the same ending', 'a=1; Domain=evilacme.example'],
    ['for a public suffix', 'a=1; Domain=co.uk'],
    ['for the top-level domain', 'a=1; Domain=.example'],
    ['for the zone with a leading dot', 'a=1; Domain=.edge.test'],
    ['for the zone in another case', 'a=1; DOMAIN=EDGE.Test'],
    ['for the zone with a trailing dot', 'a=1; Domain=edge.test.'],
    ['with a trailing dot', 'a=1; Domain=acme.example.'],
    ['with two leading dots', 'a=1; Domain=..acme.example'],
    ['for the site’s domain, then the zone', 'a=1; Domain=acme.example; Domain=edge.test'],
    ['for the zone, then the site’s domain', 'a=1; Domain=edge.test; Domain=acme.example'],
    ['with the zone, then an empty Domain', 'a=1; Domain=edge.test; Domain='],
    ['for the zone with space around Domain', 'a=1;  \tdomain =\tedge.test'],
    ['in quotes', 'a=1; Domain="edge.test"'],
    ['without a name', '=b; Domain=edge.test'],
  ])('%s is dropped', async (_name, line) => {
    expect(await arriving([line])).toEqual([]);
  });

  test('is dropped or kept line by line', async () => {
    const lines = ['a=1; Domain=edge.test', 'b=2; Domain=acme.example', 'c=3', 'd=4; Domain=co.uk'];
    expect(await arriving(lines)).toEqual([lines[1], lines[2]]);
  });

  test('is judged by the same rules on a custom domain', async () => {
    const hop = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': 'metrics.acme.example' };
    expect(await arriving(['a=1; Domain=example', 'b=2; Domain=acme.example'], hop)).toEqual([
      'b=2; Domain=acme.example',
    ]);
  });
});

/** Spellings of `Set-Cookie` that set or delete what a browser sends as `_fpid=…`. */
const IDS = [
  `_fpid=${'e'.repeat(32)}; Domain=acme.example; Path=/`,
  `_fpid=${'e'.repeat(32)}`,
  `  _fpid =${'e'.repeat(32)}`,
  `=_fpid=${'e'.repeat(32)}`,
  ` = _fpid=${'e'.repeat(32)}`,
  '_fpid=; Max-Age=0',
];

describe('the visitor’s id', () => {
  test.each(IDS)('is not set by the tag server: %s', async (line) => {
    expect(await arriving([line, 'FPID=x; Domain=acme.example'])).toEqual(['FPID=x; Domain=acme.example']);
  });

  test.each([
    ['a handler', 'GET', '/set'],
    ['a dynamic path', 'GET', '/dynamic'],
    ['a hook `before`', 'GET', '/before'],
    ['a hook `after`', 'GET', '/after'],
  ])('is not set by %s of a plugin, nor is a foreign cookie', async (_name, method, path) => {
    const answer = await stage.send(site.host, path, { method });
    expect(answer).toMatchObject({ status: 200, text: 'set' });
    expect(answer.headers['set-cookie']).toEqual(['own=1; Domain=acme.example']);
  });

  test('is set only by the bootstrap itself, whatever plugins add by hooks or to its answer', async () => {
    const answer = await stage.boot(
      site,
      { url: 'https://shop.acme.example/' },
      {
        origin: 'https://shop.acme.example',
        'x-tagyard-hop-secret': HOP_SECRET,
        'x-forwarded-host': 'metrics.acme.example',
        'x-forwarded-proto': 'https',
      },
    );
    const { id } = answer.json.profile;
    expect(answer.headers['set-cookie']).toEqual([
      `_fpid=${id}; Path=/; Max-Age=34128000; Domain=acme.example; Secure; SameSite=Lax`,
      'own=1; Domain=acme.example',
    ]);
    expect(answer.json.restoreCookies).toEqual([]);
  });
});
