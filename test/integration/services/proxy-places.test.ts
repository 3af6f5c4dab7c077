import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { describeWith, PLACES } from '../../support/components.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { writePlaces } from '../../support/proxy/place-database.ts';
import { type Ask, ask, HOP_SECRET, proxyHome, put } from '../../support/proxy/proxy.ts';
import { type Seen, startUpstream } from '../../support/upstream.ts';

const ORIGIN = 'acme-origin.example.net';
const PREVIEW = 'acme-preview.example.net';
const CUSTOM = 'metrics.acme.example';
/** A peer that is trusted to state the visitor's address, as Cloudflare is. */
const CLOUDFLARE = '127.0.0.8';
const GERMAN = '91.10.1.1';
const AMERICAN = '8.8.8.8';
const AMERICAN_V6 = '2600:1700::1';

/** Headers by which a visitor may claim to be in another place. */
const CLAIMS = {
  'x-forwarded-country': 'FR',
  'x-forwarded-region': 'IDF',
  'x-forwarded-countryregion': 'FR-IDF',
  'x-gclb-country': 'FR',
  'x-gclb-region': 'FRIDF',
  'x-geo-country': 'FR',
  'x-geo-region': 'IDF',
  'x-tagyard-country': 'FR',
};

describeWith(['nginx', 'places'], 'nginx with a database of places', () => {
  let directory: string;
  let home: Awaited<ReturnType<typeof proxyHome>>;
  let container: Awaited<ReturnType<typeof startUpstream>>;
  let edge: Awaited<ReturnType<typeof startUpstream>>;
  let warnings: string[];
  let cleanups: (() => Promise<unknown>)[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tagyard-places-'));
    home = await proxyHome();
    container = await startUpstream({ name: 'container' });
    edge = await startUpstream({ name: 'edge' });
    warnings = [];
    cleanups = [
      () => rm(directory, { recursive: true, force: true }),
      () => home.remove(),
      () => edge.close(),
      () => container.close(),
    ];
  });
  afterEach(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  const at = ({ address, port }: { address: string; port: number }) => [{ address, port }];
  async function serve(geoDatabase: string) {
    const settings: NginxSettings = {
      ...home.settings,
      ...NGINX_SETTINGS,
      edgeUpstream: { scheme: 'http', address: edge.address, port: edge.port },
      trusted: () => ({ cloudflare: [`${CLOUDFLARE}/32`], own: [] }),
      geoDatabase,
      log: { info: () => undefined, warn: (_fields, message) => void warnings.push(message) },
    };
    const backend = nginxBackend(settings);
    cleanups.push(() => backend.close());
    const endpoint = await backend.start();
    const site: ProxySpec = {
      site: 'acme',
      vhosts: [
        { kind: 'origin', host: ORIGIN, upstreams: at(container) },
        { kind: 'preview', host: PREVIEW, upstreams: at(container) },
      ],
    };
    const custom: ProxySpec = {
      site: 'acme',
      vhosts: [{ kind: 'custom', host: CUSTOM, edgeHost: 'acme.example.net' }],
    };
    const outcomes = await backend.install([put('acme', site), put(`acme/${CUSTOM}`, custom)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    const placeAt = async (asked: Ask) => placeIn((await ask(endpoint, asked)).body);
    return { backend, placeAt };
  }
  const asVisitor = (address: string) => ({
    from: CLOUDFLARE,
    headers: { ...CLAIMS, 'cf-connecting-ip': address },
  });

  test.each([
    ['a visitor from Germany', GERMAN, 'DE'],
    ['a visitor from the US', AMERICAN, 'US'],
    ['a visitor with an IPv6 address', AMERICAN_V6, 'US'],
    ['a visitor whose address is in no database', '127.0.0.1', null],
  ])(
    '%s: the country is the address’s, at the edge and at the containers',
    async (_case, address, country) => {
      const { placeAt } = await serve(PLACES);
      const stated = country === null ? {} : { 'x-forwarded-country': country };
      expect(await placeAt({ host: CUSTOM, ...asVisitor(address) })).toEqual(stated);
      const atContainer =
        country === null ? {} : { ...stated, 'x-gclb-country': country, 'x-geo-country': country };
      expect(await placeAt({ host: ORIGIN, ...asVisitor(address) })).toEqual(atContainer);
      expect(await placeAt({ host: PREVIEW, ...asVisitor(address) })).toEqual(atContainer);
      expect(warnings).toEqual([]);
    },
  );

  test('a database with regions states them, as Google’s load balancer does', async () => {
    const database = join(directory, 'city.mmdb');
    await writePlaces(database, {
      '127.0.0.2': { country: 'US', region: 'CA' },
      '127.0.0.3': { country: 'DE' },
    });
    const { placeAt } = await serve(database);
    const headers = CLAIMS;
    expect(await placeAt({ host: CUSTOM, from: '127.0.0.2', headers })).toEqual({
      'x-forwarded-country': 'US',
      'x-forwarded-region': 'CA',
    });
    expect(await placeAt({ host: ORIGIN, from: '127.0.0.2', headers })).toEqual({
      'x-forwarded-country': 'US',
      'x-forwarded-region': 'CA',
      'x-gclb-country': 'US',
      'x-gclb-region': 'USCA',
      'x-geo-country': 'US',
      'x-geo-region': 'CA',
    });
    expect(await placeAt({ host: ORIGIN, from: '127.0.0.3', headers })).toEqual({
      'x-forwarded-country': 'DE',
      'x-gclb-country': 'DE',
      'x-geo-country': 'DE',
    });
  });

  test.each([
    ['what the edge states', { 'x-forwarded-country': 'US', 'x-forwarded-region': 'CA' }, 'US', 'USCA'],
    [
      'a country of the edge without the region of another source',
      { 'x-forwarded-country': 'US' },
      'US',
      undefined,
    ],
    ['the address’s country if the edge states none', {}, 'DE', undefined],
    [
      'the address’s country if the edge states nonsense',
      { 'x-forwarded-country': 'germany' },
      'DE',
      undefined,
    ],
  ])('of a request from the edge, the container gets %s', async (_case, stated, country, subdivision) => {
    const { placeAt } = await serve(PLACES);
    const headers = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-for': GERMAN, ...stated };
    const place = await placeAt({ host: ORIGIN, headers });
    expect([place['x-gclb-country'], place['x-gclb-region']]).toEqual([country, subdivision]);
  });

  test.each([
    ['is absent', async () => undefined],
    ['is no database', (path: string) => writeFile(path, 'x'.repeat(300_000))],
    ['is empty', (path: string) => writeFile(path, '')],
  ])(
    'with a database that %s, all sites are served without a country, and a warning is logged',
    async (_case, make) => {
      const path = join(directory, 'places.mmdb');
      await make(path);
      const { backend, placeAt } = await serve(path);
      expect(await placeAt({ host: CUSTOM, ...asVisitor(GERMAN) })).toEqual({});
      expect(warnings).toEqual([expect.stringContaining(path)]);
      // Once a usable one is there, the next change uses it.
      await copyFile(PLACES, path);
      await backend.install([]);
      expect(await placeAt({ host: CUSTOM, ...asVisitor(GERMAN) })).toEqual({ 'x-forwarded-country': 'DE' });
    },
  );
});

/** The headers about the place, as an upstream got them. Its answer repeats them. */
function placeIn(body: string): Record<string, unknown> {
  const { headers } = JSON.parse(body) as Seen; // the upstream's own answer
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /country|region|geo|gclb/.test(name)));
}
