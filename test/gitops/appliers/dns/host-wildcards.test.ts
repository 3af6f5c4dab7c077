import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError } from '../../../../base/errors.ts';
import {
  dnsZone,
  HOST,
  OTHER_HOST,
  SIGNAL as signal,
  WILDCARD,
} from '../../../support/cloudflare/dns-zone.ts';
import { limitRecords } from '../../../support/cloudflare/quota.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { eventually } from '../../../support/eventually.ts';
import { loadedManifest } from '../../../support/manifest.ts';

let world: CloudflareWorld;
beforeEach(async () => {
  world = await cloudflareWorld();
});
afterEach(() => world.close());
const { dns, plant, forget, records, planOf, pass, resolve, namesOf } = dnsZone(() => world);

describe('passes of one host', () => {
  const first = loadedManifest('first', 1);
  const second = loadedManifest('second', 2);

  test('write no record for a name that the wildcard has come to cover since the plan', async () => {
    const applier = dns('wildcard');
    const { changes } = await planOf(applier, first);
    await pass(applier, second);
    // The observation of a third pass shows the wildcard before the changes of the first pass are made.
    await planOf(applier, second);
    for (const change of changes) await applier.apply(change, signal);
    expect(await records()).toEqual([
      WILDCARD,
      'first.example.net AAAA 100::',
      'second.example.net AAAA 100::',
    ]);
    expect(applier.quota?.()).toMatchObject({ used: 3 });
  });

  test.each([
    ['the wildcard was deleted', () => forget('*')],
    [
      'others have set a record below the name',
      () => plant({ type: 'TXT', name: 'x.first-origin', content: '"x"' }),
    ],
  ])('keep a name’s own record if, since the plan, %s', async (_what, happen) => {
    await pass(dns('site'), first);
    const applier = dns('wildcard');
    await pass(applier, first);
    const { changes } = await planOf(applier, first);
    expect(changes.map(({ key }) => key)).toContain('first-origin.example.net/A');
    await happen();
    await planOf(applier, second);
    const change = changes.find(({ key }) => key === 'first-origin.example.net/A');
    if (change === undefined) throw new Error('there is no change');
    await expect(applier.apply(change, signal)).rejects.toThrow(RetryableError);
    expect(resolve('first-origin.example.net')).toBe(HOST);
  });

  test('count the records of others beside a wildcard, even if they observe only one site', async () => {
    const applier = dns('wildcard');
    await pass(applier, first);
    await plant({ type: 'TXT', name: 'notes', content: '"theirs"' });
    const desired = applier.desired(first);
    await applier.observe(desired, signal, { sites: new Set(['first']), keys: new Set() });
    expect(applier.quota?.()).toEqual({
      name: 'dns_records',
      mode: 'wildcard',
      used: 3,
      limit: 200,
      perSite: 1,
    });
  });
});

describe('two hosts that start at once', () => {
  const SITE = { 'tag-1': loadedManifest('first', 1), 'tag-2': loadedManifest('second', 2) };
  const ADDRESS = { 'tag-1': HOST, 'tag-2': OTHER_HOST };
  type Host = keyof typeof SITE;
  const HOSTS = ['tag-1', 'tag-2'] as const;
  const other = (host: Host): Host => (host === 'tag-1' ? 'tag-2' : 'tag-1');
  const start = (host: Host) => dns('auto', { host, hostAddress: ADDRESS[host] });
  const wildcards = async () => (await records()).filter((one) => one.startsWith('*'));
  const wildcardOf = (host: Host) => `*.example.net A ${ADDRESS[host]}`;

  /** Passes of both hosts until nothing changes, with `check` after every change and all names checked last. */
  async function settle(appliers: Record<Host, ReturnType<typeof start>>, check: () => Promise<void>) {
    for (let round = 0; round < 4; round += 1) {
      for (const host of HOSTS) {
        for (const change of (await planOf(appliers[host], SITE[host])).changes) {
          await appliers[host].apply(change, signal);
          await check();
        }
      }
    }
    for (const host of HOSTS) {
      expect(await planOf(appliers[host], SITE[host])).toEqual({ changes: [], conflicts: [] });
      for (const name of namesOf(SITE[host])) expect(resolve(name)).toBe(ADDRESS[host]);
    }
  }
  const nothing = async () => undefined;

  test.each([
    ['tag-1 writes first', ['tag-1', 'tag-2'], 'one by one'],
    ['tag-2 writes first', ['tag-2', 'tag-1'], 'one by one'],
    ['both write before either lists', ['tag-1', 'tag-2'], 'at once'],
  ] as const)('one of them has the wildcard after its first pass: %s', async (_what, order, when) => {
    const appliers = { 'tag-1': start('tag-1'), 'tag-2': start('tag-2') };
    const plans = {
      'tag-1': await planOf(appliers['tag-1'], SITE['tag-1']),
      'tag-2': await planOf(appliers['tag-2'], SITE['tag-2']),
    };
    const applyAll = (host: Host) =>
      Promise.allSettled(plans[host].changes.map((change) => appliers[host].apply(change, signal)));
    if (when === 'one by one') {
      for (const host of order) {
        await applyAll(host);
        world.clock.advance(1_000);
      }
    } else {
      const gate = Promise.withResolvers<void>();
      let written = 0;
      world.faulty.plan(
        { kind: 'hold', until: gate.promise },
        (method) => {
          if (method !== 'POST') return false;
          written += 1;
          return true;
        },
        2,
      );
      const running = HOSTS.map(applyAll);
      await eventually(() => expect(written).toBe(2));
      await eventually(async () => expect(await wildcards()).toHaveLength(2));
      gate.resolve();
      await Promise.all(running);
    }
    const [winner] = order;
    expect(await wildcards()).toEqual([wildcardOf(winner)]);
    for (const name of namesOf(SITE[winner])) expect(resolve(name)).toBe(ADDRESS[winner]);
    await settle(appliers, nothing);
    expect(await wildcards()).toEqual([wildcardOf(winner)]);
    expect(appliers[winner].quota?.()).toMatchObject({ used: 5, perSite: 1 });
    expect(appliers[other(winner)].quota?.()).toMatchObject({ used: 5, perSite: 3 });
  });

  test('a host that wrote a second wildcard, but couldn’t check for the first, gives its own up without a gap', async () => {
    const appliers = { 'tag-1': start('tag-1'), 'tag-2': start('tag-2') };
    const plans = [
      await planOf(appliers['tag-2'], SITE['tag-2']),
      await planOf(appliers['tag-1'], SITE['tag-1']),
    ];
    world.faulty.plan({ kind: 'refuse', status: 502 }, (method) => method === 'GET', 2);
    for (const [index, host] of (['tag-2', 'tag-1'] as const).entries()) {
      await Promise.allSettled(
        (plans[index]?.changes ?? []).map((change) => appliers[host].apply(change, signal)),
      );
      world.clock.advance(1_000);
    }
    expect(await wildcards()).toHaveLength(2);
    for (const host of HOSTS) {
      await planOf(appliers[host], SITE[host]);
      expect(appliers[host].quota?.()).toMatchObject({ perSite: 3 });
    }
    await settle(appliers, async () => {
      const all = await records();
      for (const name of namesOf(SITE['tag-1'])) {
        expect(all.includes(`${name} A ${HOST}`) || all.includes(WILDCARD)).toBe(true);
      }
    });
    expect(await wildcards()).toEqual([wildcardOf('tag-2')]);
    expect(appliers['tag-2'].quota?.()).toMatchObject({ perSite: 1 });
  });

  test('in a full zone, a record changed to a second wildcard becomes a name’s own record again', async () => {
    await pass(dns('site', { host: 'tag-2', hostAddress: OTHER_HOST }), SITE['tag-2']);
    const second = dns('wildcard', { host: 'tag-2', hostAddress: OTHER_HOST });
    const { changes } = await planOf(second, SITE['tag-2']);
    await pass(dns('wildcard'), SITE['tag-1']);
    limitRecords(world, 5);
    world.clock.advance(1_000);
    const outcomes = await Promise.allSettled(changes.map((change) => second.apply(change, signal)));
    expect(outcomes).toEqual(changes.map(() => ({ status: 'rejected', reason: expect.any(RetryableError) })));
    expect(await wildcards()).toEqual([WILDCARD]);
    for (const name of namesOf(SITE['tag-2'])) expect(resolve(name)).toBe(OTHER_HOST);
    expect((await planOf(second, SITE['tag-2'])).changes).toEqual([]);
  });
});

describe('the wildcard of a host that has no site', () => {
  test('is reported by the other hosts of the instance until it is deleted, and then one of them can have it', async () => {
    const retired = dns('wildcard', { host: 'tag-2', hostAddress: OTHER_HOST });
    const [first, second] = [loadedManifest('first', 1), loadedManifest('second', 2)];
    await pass(retired, second);
    const applier = dns('auto');
    await pass(applier, first);
    expect(applier.quota?.()).not.toHaveProperty('unused');
    // The site moves to the first host.
    await pass(applier, first, second);
    await planOf(applier, first, second);
    expect(applier.quota?.()).toMatchObject({
      perSite: 3,
      unused: ['*.example.net (Tagyard instance test on host tag-2)'],
    });
    await planOf(retired);
    expect(retired.quota?.()).not.toHaveProperty('unused');
    forget('*');
    const set = dns('wildcard');
    for (let number = 0; number < 3; number += 1) await pass(set, first, second);
    expect(await records()).toEqual([
      WILDCARD,
      'first.example.net AAAA 100::',
      'second.example.net AAAA 100::',
    ]);
    expect(set.quota?.()).toEqual({
      name: 'dns_records',
      mode: 'wildcard',
      used: 3,
      limit: 200,
      perSite: 1,
    });
  });

  test.each([
    ['of another instance', 'tgy1 other tag-2 - 01234567'],
    ['of others', undefined],
  ])('is not reported as unused if it is the wildcard %s', async (_what, comment) => {
    await plant({ type: 'A', name: '*', content: OTHER_HOST, ...(comment === undefined ? {} : { comment }) });
    const applier = dns('wildcard');
    await pass(applier, loadedManifest('first', 1));
    expect(applier.quota?.()).not.toHaveProperty('unused');
  });
});
