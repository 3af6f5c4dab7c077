import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forwarderToken, prefixed, stated } from '../support/edge/forwarder.ts';
import { type Answer, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage('cache-scopes.ts');
});
afterAll(() => stage.close());

test('memory is private to a plugin and a site; acrossSites is private to a plugin', async () => {
  const [one, other] = [await stage.site(), await stage.site()];
  const stored = async (host: string, plugin: string) => (await stage.send(host, `/${plugin}`)).json;
  await stage.send(one.host, '/magpie', { method: 'POST' });
  expect(await stored(one.host, 'magpie')).toEqual({ own: `magpie of ${one.id}`, acrossSites: 'magpie' });
  expect(await stored(other.host, 'magpie')).toEqual({ own: null, acrossSites: 'magpie' });
  expect(await stored(one.host, 'squirrel')).toEqual({ own: null, acrossSites: null });
  await stage.send(other.host, '/magpie', { method: 'POST' });
  await stage.send(one.host, '/squirrel', { method: 'POST' });
  expect(await stored(one.host, 'magpie')).toEqual({ own: `magpie of ${one.id}`, acrossSites: 'magpie' });
  expect(await stored(one.host, 'squirrel')).toEqual({
    own: `squirrel of ${one.id}`,
    acrossSites: 'squirrel',
  });
});

test('only requests of the same plugin and site join a running request', async () => {
  const [one, other] = [await stage.site(), await stage.site()];
  // The upstream answers only after three requests, so there must be three separate runs.
  const all = Promise.withResolvers<object>();
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => {
    if (stage.upstream.received.length === 3) all.resolve({});
    return all.promise;
  };
  const answers = await Promise.all([
    stage.send(one.host, '/magpie/run'),
    stage.send(other.host, '/magpie/run'),
    stage.send(one.host, '/squirrel/run'),
  ]);
  expect(answers.map(({ text }) => text)).toEqual([
    `magpie of ${one.id}`,
    `magpie of ${other.id}`,
    `squirrel of ${one.id}`,
  ]);
});

test('docs/plugins.md names the members that a copied context lacks; a plugin can take each from the original', async () => {
  const { host } = await stage.site();
  const { lacking, taken } = (await stage.send(host, '/copy')).json;
  const documents = readFileSync('docs/plugins.md', 'utf8');
  const named = /are made when they\s+are read: ([^.]*)\./.exec(documents)?.[1] ?? '';
  expect(lacking).toEqual([...named.matchAll(/`(\w+)`/g)].map(([, name]) => name).toSorted());
  expect(taken).toEqual(lacking);
});

test('a plugin that replaces the site of its context still has the memory of its own site', async () => {
  const [one, other] = [await stage.site(), await stage.site()];
  const stored = async (host: string, site: string) => (await stage.send(host, `/impostor/${site}`)).json;
  await stored(one.host, other.id);
  expect(await stored(other.host, other.id)).toMatchObject({ stored: null, others: null });
  expect(await stored(one.host, one.id)).toMatchObject({ stored: 'stored', others: 'stored' });
});

test.each<[string, (site: StagedSite, origin: string) => Promise<Answer>, number]>([
  ['a bootstrap’s page', (site, url) => stage.boot(site, { url }), 60_000],
  [
    'a preflight',
    ({ host }, origin) => stage.send(host, '/boot', { method: 'OPTIONS', headers: { origin } }),
    6000,
  ],
])(
  'the isolate remembers the origin of %s, unless it is longer than a host can be',
  async (_of, send, octets) => {
    const site = await stage.site();
    const { domain = '' } = site.domains[0] ?? {};
    const parsed = async (host: string) => {
      const body = `https://${host}`;
      for (const _time of [1, 2]) expect((await send(site, body)).status).toBeLessThan(300);
      return (await stage.send(site.host, '/processed', { method: 'POST', body })).json;
    };
    expect(await parsed(domain)).toBe(1);
    expect(await parsed(`${`${'a.'.repeat(126)}${domain}`.slice(-253)}:65535`)).toBe(1);
    expect(await parsed(`${'a'.repeat(octets)}.${domain}`)).toBe(2);
  },
);

test('the isolate remembers the loader that a shop’s software requests, if the URL isn’t long', async () => {
  const token = forwarderToken('shop');
  const loader = 'lt_loader0token0of0the0shop';
  const site = await stage.site({ domains: [{ sameOrigin: { ...prefixed('/m3trics1', token), loader } }] });
  await stage.put('LOADER_TOKEN_MAP', loader, { version: 1, containerId: site.container });
  const headers = stated(token, `www.${site.domains[0]?.domain}`);
  const rendered = async (environment: string) => {
    const path = `/m3trics1/gtm.js?gtm_auth=${environment}`;
    for (const _time of [1, 2]) expect((await stage.send(site.host, path, { headers })).status).toBe(200);
    const body = `?gtm_auth=${environment}`;
    return (await stage.send(site.host, '/processed', { method: 'POST', body })).json;
  };
  expect(await rendered('aB-c_1&gtm_preview=env-2&gtm_cookies_win=x')).toBe(1);
  expect(await rendered('a'.repeat(10_000))).toBe(2);
});

test('the isolate remembers the host that a domain’s own server states, unless it is very long', async () => {
  const proven = async (seed: string, host: string) => {
    const token = forwarderToken(seed);
    const site = await stage.site({ domains: [{ sameOrigin: prefixed('/m3trics1', token) }] });
    const headers = stated(token, `${host}.${site.domains[0]?.domain}`);
    for (const _time of [1, 2]) {
      const path = `/m3trics1/l/${site.loader}.js`;
      expect((await stage.send(site.host, path, { headers })).text).toContain(`//${host}`);
    }
    return (await stage.send(site.host, '/processed', { method: 'POST', body: token })).json;
  };
  expect(await proven('one', 'www')).toBe(1);
  expect(await proven('other', 'w'.repeat(7000))).toBe(2);
});
