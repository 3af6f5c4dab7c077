import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { dnsApplier } from '../../../../gitops/appliers/dns/applier.ts';
import { cloudflareDns } from '../../../../gitops/appliers/dns/cloudflare.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const identity = { instance: 'test', host: 'tag-1' };

describe('DNS at Cloudflare', () => {
  let world: CloudflareWorld;
  let applier: ReturnType<typeof dnsApplier>;
  beforeEach(async () => {
    world = await cloudflareWorld({ records: 1000 });
    applier = applierOf();
  });
  afterEach(() => world.close());

  const applierOf = () =>
    dnsApplier({
      provider: cloudflareDns({ client: world.client, zoneId: world.emulator.zone.id }),
      identity,
      zone: 'example.net',
      hostAddress: '198.51.100.4',
    });
  const path = () => `/zones/${world.emulator.zone.id}/dns_records`;
  const create = (record: object) => world.emulator.call('POST', path(), record);
  const records = async (): Promise<{ id: string; name: string; type: string; content: string }[]> =>
    (await world.emulator.call('GET', `${path()}?per_page=5000`)).json.result;
  const batches = () => world.faulty.calls.filter((call) => call.startsWith('POST')).length;

  async function planOf(...manifests: LoadedManifest[]) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    return applier.plan(desired, await applier.observe(desired, signal));
  }
  async function applyAll(...manifests: LoadedManifest[]) {
    const { changes } = await planOf(...manifests);
    return Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
  }
  const errorsOf = (outcomes: PromiseSettledResult<void>[]) =>
    outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));

  test('writes 300 records in two calls and reads them back in one', async () => {
    const sites = Array.from({ length: 100 }, (_, number) => loadedManifest(`shop-${number}`, number));
    expect(errorsOf(await applyAll(...sites))).toEqual([]);
    expect(batches()).toBe(2);
    world.faulty.calls.length = 0;
    expect((await planOf(...sites)).changes).toEqual([]);
    expect(world.faulty.calls).toHaveLength(1);
  });

  test('finds the bad record of a batch, and fails only its site', async () => {
    const sites = Array.from({ length: 20 }, (_, number) => loadedManifest(`shop-${number}`, number));
    const { changes } = await planOf(...sites);
    // The name is taken between observation and apply.
    await create({ type: 'CNAME', name: 'shop-7-origin', content: 'elsewhere.example' });
    const outcomes = await Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
    const failed = changes.filter((_, index) => outcomes[index]?.status === 'rejected');
    expect(failed.map(({ key }) => key)).toEqual(['shop-7-origin.example.net/A']);
    expect(errorsOf(outcomes)[0]).toBeInstanceOf(RetryableError);
    expect(await records()).toHaveLength(60);
    // The next observation finds the record that has the name.
    const { conflicts } = await planOf(...sites);
    expect(conflicts).toMatchObject([{ site: 'shop-7', key: 'shop-7-origin.example.net/A' }]);
  });

  test('never repeats a batch whose outcome is unknown, and finds its records in the next observation', async () => {
    world.faulty.plan({ kind: 'fail after' }, (method) => method === 'POST');
    const outcomes = await applyAll(loadedManifest());
    expect(errorsOf(outcomes).every((error) => error instanceof RetryableError)).toBe(true);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(3);
    expect(batches()).toBe(1);
    expect((await planOf(loadedManifest())).changes).toEqual([]);
    expect(await records()).toHaveLength(3);
  });

  test('fails the whole batch when the token is revoked, without bisecting', async () => {
    const { changes } = await planOf(loadedManifest());
    world.faulty.plan(
      {
        kind: 'refuse',
        status: 403,
        body: '{"success":false,"errors":[{"code":9109,"message":"Unauthorized"}],"messages":[],"result":null}',
      },
      (method) => method === 'POST',
      10,
    );
    const outcomes = await Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
    expect(errorsOf(outcomes)).toHaveLength(3);
    expect(errorsOf(outcomes).every((error) => error instanceof TerminalError)).toBe(true);
    expect(batches()).toBe(1);
  });

  test('repairs an edited record', async () => {
    await applyAll(loadedManifest());
    const origin = (await records()).find(({ name }) => name.startsWith('acme-shop-origin'));
    await world.emulator.call('PATCH', `${path()}/${origin?.id}`, { content: '203.0.113.9' });
    const { changes } = await planOf(loadedManifest());
    expect(changes).toMatchObject([{ op: 'update', key: 'acme-shop-origin.example.net/A' }]);
    await applyAll(loadedManifest());
    expect((await records()).map(({ content }) => content)).not.toContain('203.0.113.9');
    expect((await planOf(loadedManifest())).changes).toEqual([]);
  });

  test('keeps one of two records of ours under one name', async () => {
    await applyAll(loadedManifest());
    const origin = (await records()).find(({ name }) => name.startsWith('acme-shop-origin'));
    await create({ ...origin, content: '203.0.113.9' });
    expect((await planOf(loadedManifest())).changes).toMatchObject([{ op: 'update' }]);
    await applyAll(loadedManifest());
    expect(await records()).toHaveLength(3);
    expect((await planOf(loadedManifest())).changes).toEqual([]);
  });

  test.each([
    ['an alias', { type: 'CNAME', content: 'elsewhere.example' }, true],
    ['an address of the same type', { type: 'AAAA', content: '2001:db8::1' }, true],
    ['an address of the other type', { type: 'A', content: '203.0.113.9' }, true],
    ['a text', { type: 'TXT', content: '"google-site-verification=1"' }, false],
    ['a mail exchanger', { type: 'MX', content: 'mail.example.net', priority: 10 }, false],
    [
      'a service',
      {
        type: 'SRV',
        data: { priority: 1, weight: 5, port: 443, target: 'a.example.net' },
        content: '1 5 443 a.example.net',
      },
      false,
    ],
    [
      'a certificate authority',
      { type: 'CAA', data: { flags: 0, tag: 'issue', value: 'ca.example' }, content: '0 issue "ca.example"' },
      false,
    ],
    [
      'a service binding',
      { type: 'HTTPS', data: { priority: 1, target: '.', value: 'alpn="h2"' }, content: '1 . alpn="h2"' },
      false,
    ],
  ])('knows whether a foreign record on the name, %s, is a conflict: $2', async (_name, record, conflict) => {
    await create({ name: 'acme-shop', ...record });
    const { changes, conflicts } = await planOf(loadedManifest());
    expect(conflicts.map(({ key }) => key)).toEqual(conflict ? ['acme-shop.example.net/AAAA'] : []);
    expect(changes).toHaveLength(conflict ? 2 : 3);
    await applyAll(loadedManifest());
    expect((await records()).filter(({ type }) => type === record.type)).toContainEqual(
      expect.objectContaining({ content: record.content }),
    );
  });

  test('never touches the records of another host or another instance', async () => {
    for (const [name, mark] of [
      ['a', 'tgy1 test tag-2 other 0123abcd'],
      ['b', 'tgy1 prod tag-1 other 0123abcd'],
      ['c', 'tgy1 test tag-1'],
    ]) {
      await create({ type: 'A', name, content: '192.0.2.1', comment: mark });
    }
    expect(await planOf()).toEqual({ changes: [], conflicts: [] });
  });

  test('refuses a name outside the zone, to which Cloudflare would append the zone’s name', async () => {
    const manifest = loadedManifest('acme-shop', 0, {
      hostnames: {
        edge: 'acme.other.example',
        origin: 'a-origin.example.net',
        preview: 'a-preview.example.net',
      },
    });
    const errors = errorsOf(await applyAll(manifest));
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(TerminalError);
    expect((await records()).map(({ name }) => name)).not.toContain('acme.other.example.example.net');
  });
});
