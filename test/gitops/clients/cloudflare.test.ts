import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { CloudflareRefusal } from '../../../gitops/clients/cloudflare-errors.ts';
import { startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';
import { type FaultyCloudflare, startFaultyCloudflare } from '../../support/cloudflare/faulty.ts';

const { signal } = new AbortController();
const post = { type: 'A', name: 'shop.example.net', content: '192.0.2.1', ttl: 1, proxied: false } as const;
const creating = { deletes: [], puts: [], posts: [post] };

describe('the Cloudflare client', () => {
  let emulator: TestEmulator;
  let faulty: FaultyCloudflare;
  let zone: string;
  beforeEach(async () => {
    emulator = await startEmulator();
    faulty = await startFaultyCloudflare(emulator.url);
    zone = emulator.zone.id;
  });
  afterEach(async () => {
    await faulty.close();
    await emulator.close();
  });

  const clientOf = (options = {}) => emulator.client({ url: faulty.url, timeoutMs: 5000, ...options });
  const failure = (call: Promise<unknown>) =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    );

  test('names the zone of an id', async () => {
    expect(await clientOf().zone(zone, signal)).toMatchObject({
      id: zone,
      name: 'example.net',
      plan: { legacy_id: 'free' },
      created_on: expect.any(String),
    });
  });

  describe('after a 429', () => {
    test.each([
      ['that states seconds', { 'retry-after': '7' }, 7],
      ['that states a date', { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }, 3600],
      ['that doesn’t say how long', {}, 60],
    ])('%s, pauses every call', async (_name, headers: Record<string, string>, seconds) => {
      const client = clientOf();
      faulty.plan({ kind: 'refuse', status: 429, headers });
      const first = await failure(client.routes(zone, signal));
      expect(first).toBeInstanceOf(RetryableError);
      const second = await failure(client.kvKeys('any', signal));
      expect(second).toBeInstanceOf(RetryableError);
      // The error states what is left of the pause, which is a second or two less.
      const { retryAfter = 0 } = second as RetryableError;
      expect(retryAfter).toBeGreaterThan(seconds - 5);
      expect(retryAfter).toBeLessThanOrEqual(seconds);
      expect(faulty.calls).toHaveLength(1);
    });

    test('continues when the pause is over', async () => {
      let time = 0;
      const client = clientOf({ clock: { now: () => time, sleep: async () => {} } });
      faulty.plan({ kind: 'refuse', status: 429, headers: { 'retry-after': '7' } });
      await failure(client.routes(zone, signal));
      time += 6999;
      expect(await failure(client.routes(zone, signal))).toMatchObject({ retryAfter: 1 });
      time += 1;
      expect(await client.routes(zone, signal)).toEqual([]);
    });
  });

  test.each([
    ['is answered 500 after it was carried out', { kind: 'fail after' } as const],
    ['is answered 502 by something in between', { kind: 'fail after', status: 502 } as const],
    ['is answered by half a body', { kind: 'truncate' } as const],
    ['is never answered', { kind: 'hang' } as const],
    ['loses its connection', { kind: 'drop' } as const],
    [
      'is refused by a page that isn’t Cloudflare’s',
      { kind: 'refuse', status: 403, body: '<html>' } as const,
    ],
    [
      'is answered with success: false and 200',
      { kind: 'refuse', status: 200, body: '{"success":false}' } as const,
    ],
  ])('treats a write that %s as retryable, and never repeats it itself', async (_name, fault) => {
    faulty.plan(fault);
    const error = await failure(clientOf({ timeoutMs: 200 }).batchDnsRecords(zone, creating, signal));
    expect(error).toBeInstanceOf(RetryableError);
    expect(faulty.calls).toHaveLength(1);
  });

  test.each([
    ['a truncated list', { kind: 'truncate' } as const],
    ['an empty object', { kind: 'refuse', status: 200, body: '{}' } as const],
    ['an empty body', { kind: 'refuse', status: 200, body: '' } as const],
    [
      'a list without its count',
      { kind: 'change', change: ({ result }: never) => ({ success: true, result }) } as const,
    ],
    [
      'fewer records than the answer’s count',
      { kind: 'change', change: (body: { result: unknown[] }) => ({ ...body, result: [] }) } as const,
    ],
    [
      'a record without its name',
      { kind: 'change', change: (body: object) => ({ ...body, result: [{ id: '1', type: 'A' }] }) } as const,
    ],
  ])('treats %s as a failure, never as an empty zone', async (_name, fault) => {
    const client = clientOf();
    await client.batchDnsRecords(zone, creating, signal);
    faulty.plan(fault);
    expect(await failure(client.dnsRecords(zone, {}, signal))).toBeInstanceOf(RetryableError);
    expect(await client.dnsRecords(zone, {}, signal)).toHaveLength(1);
  });

  test.each([
    ['a revoked token', { token: 'revoked' }, 'unauthorized'],
    ['a foreign zone', { zone: '0'.repeat(32) }, 'unauthorized'],
  ])(
    'is refused for good with %s',
    async (_name, { token, zone: other = zone }: { token?: string; zone?: string }, meaning) => {
      const client = clientOf(token === undefined ? {} : { token });
      expect(await failure(client.routes(other, signal))).toMatchObject({
        name: 'CloudflareRefusal',
        meaning,
      });
    },
  );

  test('reads a code by its endpoint: 10009 is a missing route, elsewhere a missing namespace', async () => {
    const client = clientOf();
    const route = await failure(client.deleteRoute(zone, '0'.repeat(32), signal));
    expect(route).toBeInstanceOf(CloudflareRefusal);
    expect(route).toMatchObject({ endpoint: 'routes', codes: [10009], meaning: 'absent' });
    const namespace = await failure(client.kvKeys('0'.repeat(32), signal));
    expect(namespace).toMatchObject({ endpoint: 'kv', codes: [10009], meaning: 'absent' });
  });

  test('stops when its caller aborts', async () => {
    faulty.plan({ kind: 'hang' });
    const aborted = AbortSignal.timeout(50);
    const error = await failure(clientOf({ timeoutMs: 60_000 }).routes(zone, aborted));
    expect(error).toBeInstanceOf(RetryableError);
  });

  test('follows cursors to the end of a namespace, and returns each key’s metadata', async () => {
    const id = emulator.namespaces.get('ROUTES')?.id ?? '';
    const client = clientOf();
    const pairs = Array.from({ length: 2500 }, (_, index) => ({
      key: `host-${String(index).padStart(4, '0')}`,
      value: '{}',
      metadata: { index },
    }));
    expect(await client.writeKv(id, pairs, signal)).toEqual([]);
    const keys = await client.kvKeys(id, signal);
    expect(keys.map(({ name }) => name)).toEqual(pairs.map(({ key }) => key));
    expect(keys[2499]?.metadata).toEqual({ index: 2499 });
    expect(faulty.calls.filter((call) => call.startsWith('GET'))).toHaveLength(3);
  });

  describe('given the recorded pages of a real zone', () => {
    interface Page {
      readonly result: readonly { id: string; type: string; name: string }[];
      readonly result_info: object;
    }
    const recorded = [1, 2, 3].map((page): Page => {
      const file = new URL(`../../support/cloudflare/pages/dns_records-${page}.json`, import.meta.url);
      return JSON.parse(readFileSync(file, 'utf8'));
    });

    test('refuses them as they are: records were added by hand, and the counts no longer add up', async () => {
      for (const page of recorded) faulty.plan({ kind: 'refuse', status: 200, body: JSON.stringify(page) });
      expect(await failure(clientOf().dnsRecords(zone, {}, signal))).toBeInstanceOf(RetryableError);
    });

    test('reads every record of them if each id is unique and the total is right', async () => {
      const total = recorded.flatMap(({ result }) => result).length;
      recorded.forEach((page, number) => {
        const result = page.result.map((record, index) => ({ ...record, id: `${number}-${index}` }));
        const body = JSON.stringify({
          ...page,
          result,
          result_info: { ...page.result_info, total_count: total },
        });
        faulty.plan({ kind: 'refuse', status: 200, body });
      });
      const records = await clientOf().dnsRecords(zone, {}, signal);
      expect(records).toHaveLength(total);
      expect(faulty.calls).toHaveLength(3);
      expect(new Set(records.map(({ type }) => type))).toContain('SRV');
    });
  });
});
