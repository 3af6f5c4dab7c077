import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { REAL_LIMITS } from '../../../../sites/local/cloudflare/api/limits.ts';
import { writePoints } from '../../../../sites/local/cloudflare/api/points.ts';
import { openState } from '../../../../sites/local/cloudflare/api/state.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  startEmulator,
  type TestEmulator,
} from '../../../support/cloudflare/emulator.ts';
import { describeWith } from '../../../support/components.ts';
import { eventually } from '../../../support/eventually.ts';
import { testClock } from '../../../support/test-clock.ts';

describe('the emulator', () => {
  let cloudflare: TestEmulator;
  afterEach(() => cloudflare.close());

  test('lists and describes its zones, and verifies its token', async () => {
    cloudflare = await startEmulator();
    const { json } = await cloudflare.call('GET', '/zones?name=example.net');
    expect(json.result).toMatchObject([{ id: cloudflare.zone.id, name: 'example.net', status: 'active' }]);
    expect((await cloudflare.call('GET', '/zones?name=other.example')).json.result).toEqual([]);
    expect((await cloudflare.call('GET', `/zones/${cloudflare.zone.id}`)).json.result).toEqual(
      json.result[0],
    );
    expect((await cloudflare.call('GET', '/user/tokens/verify')).json.result.status).toBe('active');
  });

  test.each([
    ['no token', '/zones', { authorization: '' }, 400, 6003],
    ['another scheme', '/zones', { authorization: 'Basic abc' }, 400, 6003],
    ['a wrong token', '/zones', { authorization: 'Bearer wrong' }, 401, 10000],
    ['another account’s zone', `/zones/${'0'.repeat(32)}`, {}, 403, 9109],
    ['a malformed id', '/zones/nope', {}, 404, 7003],
    ['an account that isn’t ours', `/accounts/${'0'.repeat(32)}/storage/kv/namespaces`, {}, 403, 9109],
  ])('refuses %s', async (_name, path, headers, status, code) => {
    cloudflare = await startEmulator();
    const answer = await cloudflare.call('GET', path, undefined, headers);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ success: false, errors: [{ code }], result: null });
  });

  test.each([
    ['Workers Scripts', (account: string) => `/accounts/${account}/workers/domains`],
    [
      'Workers Scripts',
      (account: string) => `/accounts/${account}/workers/scripts/${EMULATOR_SCRIPT}/settings`,
    ],
    ['Workers Routes', (_account: string, zone: string) => `/zones/${zone}/workers/routes`],
    ['Workers KV Storage', (account: string) => `/accounts/${account}/storage/kv/namespaces`],
    ['DNS', (_account: string, zone: string) => `/zones/${zone}/dns_records`],
    [
      'Zone Settings',
      (_account: string, zone: string) => `/zones/${zone}/settings/google-tag-gateway/config`,
    ],
  ])('refuses a token without the permission %s, and only there', async (permission, pathOf) => {
    cloudflare = await startEmulator({ lacking: [permission] });
    const path = pathOf(cloudflare.account, cloudflare.zone.id);
    expect(await cloudflare.call('GET', path)).toMatchObject({
      status: 403,
      json: { success: false, errors: [{ code: 10000 }], result: null },
    });
    expect((await cloudflare.call('GET', `/zones/${cloudflare.zone.id}`)).status).toBe(200);
    const whole = await startEmulator();
    expect((await whole.call('GET', pathOf(whole.account, whole.zone.id))).status).toBe(200);
    await whole.close();
  });

  test('refuses an unknown path and a body that isn’t JSON', async () => {
    cloudflare = await startEmulator();
    expect(await cloudflare.call('GET', '/nothing/here')).toMatchObject({
      status: 404,
      json: { errors: [{ code: 7003 }] },
    });
    const path = `/zones/${cloudflare.zone.id}/dns_records`;
    expect((await cloudflare.call('POST', path, '{"type":')).status).toBe(400);
  });

  test('answers the address ranges without a token', async () => {
    cloudflare = await startEmulator();
    const { status, json } = await cloudflare.call('GET', '/ips', undefined, { authorization: '' });
    expect(status).toBe(200);
    expect(json.result.ipv4_cidrs).toEqual(['127.0.0.0/8']);
  });

  test('refuses all calls for five minutes once the limit is reached; calls without a valid token don’t count', async () => {
    let time = Date.parse('2026-01-01T00:00:00Z');
    const limits = { ...REAL_LIMITS, calls: { calls: 2, seconds: 300 } };
    cloudflare = await startEmulator({ limits, now: () => new Date(time) });
    await cloudflare.call('GET', '/ips', undefined, { authorization: '' });
    await cloudflare.call('GET', '/zones', undefined, { authorization: 'Bearer wrong' });
    const first = await cloudflare.call('GET', '/zones');
    expect(first.headers.get('x-ratelimit-limit')).toBe('2');
    expect(first.headers.get('ratelimit')).toBe('"default";r=1;t=300');
    await cloudflare.call('GET', '/zones');
    const refused = await cloudflare.call('GET', '/zones');
    expect(refused).toMatchObject({ status: 429, json: { errors: [{ code: 10500 }] } });
    expect(refused.headers.get('retry-after')).toBe('300');
    time += 299_000;
    expect((await cloudflare.call('GET', `/zones/${cloudflare.zone.id}`)).status).toBe(429);
    time += 1_000;
    expect((await cloudflare.call('GET', '/zones')).status).toBe(200);
  });

  test('has Cloudflare’s own limits by default', async () => {
    cloudflare = await startEmulator();
    const { headers } = await cloudflare.call('GET', '/zones');
    expect(headers.get('ratelimit-policy')).toBe('"default";q=1200;w=300');
  });

  test('shows a write of KV to the API at once, and to the worker later, each key in its own time (docs/facts.md, Cloudflare Workers)', async () => {
    const clock = testClock();
    cloudflare = await startEmulator({ clock });
    const path = `/accounts/${cloudflare.account}/storage/kv/namespaces/${cloudflare.namespaces.get('ROUTES')?.id}`;
    const pairs = ['a', 'b'].map((key) => ({ key, value: key }));
    expect((await cloudflare.call('PUT', `${path}/bulk`, pairs)).status).toBe(200);
    expect((await cloudflare.call('GET', `${path}/keys`)).json.result).toHaveLength(2);
    const seen = async () => (await cloudflare.worker('ROUTES').list()).keys.map(({ name }) => name);
    expect(await seen()).toEqual([]);
    clock.advance(30_000);
    await eventually(async () => expect(await seen()).toHaveLength(1));
    clock.advance(29_999);
    expect(await seen()).toHaveLength(1);
    clock.advance(1);
    await eventually(async () => expect(await seen()).toEqual(['a', 'b']));
  });

  test('keeps its state on disk', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tagyard-emulator-'));
    try {
      const open = () => startEmulator({ db: openState(join(directory, 'state.sqlite')) });
      cloudflare = await open();
      const zone = `/zones/${cloudflare.zone.id}`;
      await cloudflare.call('POST', `${zone}/dns_records`, { type: 'A', name: 'a', content: '192.0.2.1' });
      await cloudflare.call('POST', `${zone}/workers/routes`, {
        pattern: 'a.example.net/*',
        script: EMULATOR_SCRIPT,
      });
      const [id, account] = [cloudflare.zone.id, cloudflare.account];
      await cloudflare.close();

      cloudflare = await open();
      expect([cloudflare.zone.id, cloudflare.account]).toEqual([id, account]);
      expect((await cloudflare.call('GET', `${zone}/dns_records`)).json.result).toHaveLength(1);
      expect((await cloudflare.call('GET', `${zone}/workers/routes`)).json.result).toHaveLength(1);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test('answers the data points of three months by its own control', async () => {
    const now = new Date('2026-05-31T12:00:00Z');
    const limits = { ...REAL_LIMITS, calls: { calls: 1, seconds: 300 } };
    cloudflare = await startEmulator({ checked: false, limits });
    const point = (time: string, index: string) => ({
      ...{ dataset: 'weather', time: Date.parse(time), index },
      ...{ blobs: ['ü', ''], doubles: [1.5] },
    });
    const old = point('2026-02-28T12:00:00Z', 'oslo');
    const points = [point('2026-05-31T11:59:59Z', 'rome'), point('2026-03-31T12:00:00Z', 'oslo')];
    writePoints(cloudflare.db, [old], new Date(old.time));
    writePoints(cloudflare.db, [...points, { ...old, dataset: 'others', time: now.getTime() }], now);
    const read = (token: string) =>
      fetch(`${new URL(cloudflare.url).origin}/control/points/weather`, {
        headers: { authorization: `Bearer ${token}` },
      });
    expect((await read('wrong')).status).not.toBe(200);
    for (let count = 0; count < 3; count += 1) {
      expect(await (await read(EMULATOR_TOKEN)).json()).toEqual(points);
    }
  });

  describe('with routes', () => {
    const route = (pattern: string, script: string | null = EMULATOR_SCRIPT) => ({
      pattern,
      ...(script === null ? {} : { script }),
    });

    test('creates, changes and deletes them, and updates the edge before it answers', async () => {
      cloudflare = await startEmulator();
      const path = `/zones/${cloudflare.zone.id}/workers/routes`;
      const created = await cloudflare.call('POST', path, route('shop.example.net/*'));
      expect(created.json.result).toMatchObject({ pattern: 'shop.example.net/*', script: EMULATOR_SCRIPT });
      expect(cloudflare.routes).toEqual([['shop.example.net/*']]);
      const one = `${path}/${created.json.result.id}`;
      await cloudflare.call('PUT', one, route('*.example.net/*'));
      expect(cloudflare.routes.at(-1)).toEqual(['*.example.net/*']);
      expect((await cloudflare.call('GET', path)).json.result).toHaveLength(1);
      expect((await cloudflare.call('DELETE', one)).status).toBe(200);
      expect(cloudflare.routes.at(-1)).toEqual([]);
      expect((await cloudflare.call('DELETE', one)).json.errors[0].code).toBe(10009);
    });

    test.each([
      ['a pattern that exists', 'shop.example.net/*', EMULATOR_SCRIPT, 409, 10020],
      ['an unknown script', 'other.example.net/*', 'unknown', 400, 10019],
      ['a star inside the host', 'a.*.example.net/*', EMULATOR_SCRIPT, 400, 10022],
      ['a star inside the path', 'a.example.net/*/b', EMULATOR_SCRIPT, 400, 10022],
      ['a query', 'a.example.net/?b=c', EMULATOR_SCRIPT, 400, 10022],
      ['a host of another zone', 'shop.other.example/*', EMULATOR_SCRIPT, 400, 10022],
      ['a host that only ends like the zone', 'myexample.net/*', EMULATOR_SCRIPT, 400, 10022],
    ])('refuses %s', async (_name, pattern, script, status, code) => {
      cloudflare = await startEmulator();
      const path = `/zones/${cloudflare.zone.id}/workers/routes`;
      await cloudflare.call('POST', path, route('shop.example.net/*'));
      const refused = await cloudflare.call('POST', path, route(pattern, script));
      expect(refused).toMatchObject({ status, json: { errors: [{ code }] } });
    });

    test('refuses more than a zone can have, and takes one more when one is gone', async () => {
      cloudflare = await startEmulator({ limits: { ...REAL_LIMITS, routes: 2 } });
      const path = `/zones/${cloudflare.zone.id}/workers/routes`;
      await cloudflare.call('POST', path, route('a.example.net/*'));
      const { json } = await cloudflare.call('POST', path, route('b.example.net/*', null));
      const refused = await cloudflare.call('POST', path, route('c.example.net/*'));
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ code: 10073 }] } });
      expect(refused.json.errors[0].message).toContain('zone example.net allows 2 routes');
      await cloudflare.call('DELETE', `${path}/${json.result.id}`);
      expect((await cloudflare.call('POST', path, route('c.example.net/*'))).status).toBe(200);
    });
  });
});

describeWith('reference', 'an emulator of the tests', () => {
  test('throws on close after a request that Cloudflare’s API document doesn’t describe', async () => {
    const cloudflare = await startEmulator();
    await cloudflare.call('GET', '/zones?nonsense=1');
    await expect(cloudflare.close()).rejects.toThrow('query nonsense is not in the document');
  });
});
