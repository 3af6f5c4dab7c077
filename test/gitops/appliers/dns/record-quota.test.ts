import { afterEach, beforeEach, expect, test } from 'vitest';
import { RetryableError } from '../../../../base/errors.ts';
import { dns } from '../../../../gitops/appliers/dns/index.ts';
import { quotaOfPlan, recordQuota } from '../../../../gitops/appliers/dns/record-quota.ts';
import { dnsSettings } from '../../../../gitops/appliers/dns/settings.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';

const { signal } = new AbortController();
let world: CloudflareWorld;
beforeEach(async () => {
  world = await cloudflareWorld();
});
afterEach(() => world.close());

test.each([
  ['free', '2024-08-31T23:59:59Z', 1_000],
  ['free', '2024-09-01T00:00:00Z', 200],
  ['pro', '2026-01-01T00:00:00Z', 3_500],
  ['business', '2020-01-01T00:00:00Z', 3_500],
  ['enterprise', '2020-01-01T00:00:00Z', 3_500],
  ['something new', '2026-01-01T00:00:00Z', null],
  [undefined, '2026-01-01T00:00:00Z', null],
])('the plan %s of a zone created at %s allows %s records', (plan, created_on, quota) => {
  expect(quotaOfPlan({ ...(plan === undefined ? {} : { plan: { legacy_id: plan } }), created_on })).toBe(
    quota,
  );
});

const usage = (record_quota: number | null) => ({
  kind: 'refuse' as const,
  status: 200,
  body: JSON.stringify({
    success: true,
    errors: [],
    messages: [],
    result: { record_quota, record_usage: 3 },
  }),
});
const isUsage = (_method: string, path: string) => path.endsWith('/dns_records/usage');
const ask = () => recordQuota(world.client, world.emulator.zone.id, signal);

const forbidden = {
  kind: 'refuse' as const,
  status: 403,
  body: JSON.stringify({
    success: false,
    errors: [{ code: 9109, message: 'Unauthorized to access requested resource' }],
    messages: [],
    result: null,
  }),
};

test('the quota is the figure that Cloudflare states, or else that of the plan', async () => {
  world.faulty.plan(usage(4_321), isUsage);
  expect(await ask()).toBe(4_321);
  world.faulty.plan(usage(null), isUsage);
  expect(await ask()).toBe(200);
  // A token without the permission, or an API without the path.
  world.faulty.plan(forbidden, isUsage);
  expect(await ask()).toBe(200);
});

test.each([200, 1_000, 3_500])(
  'a zone with a quota of %s records states it, and its plan implies the same',
  async (records) => {
    const other = await cloudflareWorld({ records });
    try {
      const { zone } = other.emulator;
      expect(await recordQuota(other.client, zone.id, signal)).toBe(records);
      expect(quotaOfPlan(await other.client.zone(zone.id, signal))).toBe(records);
    } finally {
      await other.close();
    }
  },
);

test('an API that fails is an error, not an unknown quota', async () => {
  world.faulty.plan({ kind: 'fail after' }, isUsage);
  await expect(ask()).rejects.toThrow(RetryableError);
});

const settings = (extra: object) => dnsSettings.parse({ ...extra });
const services = (now = () => Date.now(), client = world.client) => ({
  identity: { instance: 'test', host: 'tag-1' },
  cloudflare: { client, zoneId: world.emulator.zone.id },
  edgeDomain: 'example.net',
  hostAddress: '198.51.100.4',
  stateDir: '/nowhere',
  now,
});

test('the quota is asked for once in many passes, and never if it is set', async () => {
  for (const [given, limit, calls] of [
    [{}, 200, 1],
    [{ DNS_RECORD_QUOTA: '7' }, 7, 0],
  ] as const) {
    world.faulty.calls.length = 0;
    const applier = await dns.create(settings(given), services());
    for (let pass = 0; pass < 3; pass += 1) await applier.observe([], signal);
    expect(applier.quota?.()).toMatchObject({ name: 'dns_records', used: 0, limit });
    expect(world.faulty.calls.filter((call) => !call.endsWith('/dns_records'))).toHaveLength(calls);
  }
});

test.each([
  ['fails', { kind: 'fail after' as const }],
  ['does not answer', { kind: 'hang' as const }],
  ['answers with another shape', { kind: 'change' as const, change: () => ({ success: true, result: [] }) }],
])('if the API %s, the last quota stays, and records are still read', async (_what, fault) => {
  let now = Date.parse('2026-11-21T00:00:00Z');
  // Short: where the API does not answer, this test waits for it twice.
  const client = world.emulator.client({ url: world.faulty.url, timeoutMs: 1_500 });
  const applier = await dns.create(
    settings({}),
    services(() => now, client),
  );
  const asked = async () => {
    world.faulty.calls.length = 0;
    await applier.observe([], signal);
    return world.faulty.calls.some((call) => call.endsWith('/usage'));
  };
  world.faulty.plan(fault, isUsage);
  expect(await asked()).toBe(true);
  expect(applier.quota?.()).toMatchObject({ used: 0, limit: null });
  // A failed query is not repeated with every observation.
  expect(await asked()).toBe(false);
  now += 600_000;
  expect(await asked()).toBe(true);
  expect(applier.quota?.()).toMatchObject({ limit: 200 });
  now += 3_600_000;
  world.faulty.plan(fault, isUsage);
  expect(await asked()).toBe(true);
  expect(applier.quota?.()).toMatchObject({ limit: 200 });
});

test('a wildcard needs Cloudflare: on RFC 2136, none covers a name with a mark below it', async () => {
  const rfc2136 = settings({ DNS_PROVIDER: 'rfc2136', DNS_RECORD_MODE: 'wildcard' });
  await expect(dns.create(rfc2136, services())).rejects.toThrow('DNS_RECORD_MODE=wildcard needs');
});
