import { afterEach, beforeEach, expect, test } from 'vitest';
import { routePatterns } from '../../../../../sites/local/cloudflare/api/context.ts';
import { ensureZone } from '../../../../../sites/local/cloudflare/api/state.ts';
import {
  EMULATOR_SCRIPT,
  startEmulator,
  type TestEmulator,
} from '../../../../support/cloudflare/emulator.ts';

let cloudflare: TestEmulator;
beforeEach(async () => {
  cloudflare = await startEmulator(); // with the zone example.net
  for (const name of ['shop.example.net', 'other.example'])
    ensureZone(cloudflare.db, name, new Date('2026-01-01T00:00:00Z'));
});
afterEach(() => cloudflare.close());

const put = (domain: { hostname: string; zone_name?: string }) =>
  cloudflare.call('PUT', `/accounts/${cloudflare.account}/workers/domains`, {
    ...domain,
    service: EMULATOR_SCRIPT,
  });

test.each([
  ['the zone’s own name', { hostname: 'example.net' }, 'example.net'],
  ['a name below the zone', { hostname: 'tags.example.net' }, 'example.net'],
  ['the own name of a zone below another', { hostname: 'shop.example.net' }, 'shop.example.net'],
  ['a name below two zones', { hostname: 'tags.shop.example.net' }, 'shop.example.net'],
  [
    'a name below two zones, with the name of the upper one',
    { hostname: 'tags.shop.example.net', zone_name: 'example.net' },
    'example.net',
  ],
  [
    'a name below two zones, with the name of the lower one',
    { hostname: 'tags.shop.example.net', zone_name: 'shop.example.net' },
    'shop.example.net',
  ],
])(
  'without a zone’s id, %s gets the zone that the request names, or else the nearest one',
  async (_name, domain, zone) => {
    expect(await put(domain)).toMatchObject({ status: 200, json: { result: { zone_name: zone } } });
  },
);

test('is listed with all its members, alone by each filter, and a route comes before it', async () => {
  const { account, zone } = cloudflare;
  const path = `/accounts/${account}/workers/domains`;
  await put({ hostname: 'shop.example.net' });
  const { json } = await put({ hostname: 'tags.example.net' });
  const domain = {
    ...{ hostname: 'tags.example.net', service: EMULATOR_SCRIPT, environment: 'production' },
    ...{ zone_id: zone.id, zone_name: 'example.net' },
    id: expect.any(String),
    cert_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-/),
  };
  expect(json.result).toEqual(domain);
  expect((await cloudflare.call('GET', path)).json.result).toHaveLength(2);
  for (const query of ['hostname=tags.example.net', `zone_id=${zone.id}`, 'zone_name=example.net']) {
    expect((await cloudflare.call('GET', `${path}?${query}`)).json.result).toEqual([domain]);
  }
  await cloudflare.call('POST', `/zones/${zone.id}/workers/routes`, { pattern: '*.example.net/*' });
  const own = ['shop.example.net/*', 'tags.example.net/*'];
  expect(routePatterns(cloudflare.db, [EMULATOR_SCRIPT])).toEqual([own, ['*.example.net/*']]);
  expect(routePatterns(cloudflare.db, ['another-worker'])).toEqual([[], ['*.example.net/*']]);
});

test.each([
  ['a name in no zone', { hostname: 'tags.example.org' }],
  ['a name that only ends like a zone', { hostname: 'notexample.net' }],
  ['a zone that the account doesn’t have', { hostname: 'tags.example.net', zone_name: 'example.org' }],
  ['a zone that the name isn’t in', { hostname: 'tags.example.net', zone_name: 'other.example' }],
])('refuses %s', async (_name, domain) => {
  expect(await put(domain)).toMatchObject({ status: 400, json: { errors: [{ code: 100112 }] } });
});
