import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { QuotaReachedError } from '../../../../base/errors.ts';
import {
  dnsZone,
  HOST,
  OTHER_HOST,
  SIGNAL as signal,
  WILDCARD,
} from '../../../support/cloudflare/dns-zone.ts';
import { limitRecords } from '../../../support/cloudflare/quota.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { loadedManifest } from '../../../support/manifest.ts';

let world: CloudflareWorld;
beforeEach(async () => {
  world = await cloudflareWorld();
});
afterEach(() => world.close());
const { dns, sites, plant, records, planOf, pass, resolve, namesOf } = dnsZone(() => world);

describe('a wildcard for the names that lead to this host (docs/facts.md, DNS updates)', () => {
  test('needs one record for each site instead of three, and one for the wildcard', async () => {
    const applier = dns('auto');
    expect((await pass(applier, ...sites(60))).every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await planOf(applier, ...sites(60))).toEqual({ changes: [], conflicts: [] });
    const all = await records();
    expect(all).toHaveLength(61);
    expect(all).toContain(WILDCARD);
    for (const site of sites(60)) for (const name of namesOf(site)) expect(resolve(name)).toBe(HOST);
    expect(world.faulty.calls.filter((call) => call.startsWith('POST'))).toHaveLength(1);
    expect(applier.quota?.()).toEqual({
      name: 'dns_records',
      mode: 'wildcard',
      used: 61,
      limit: 200,
      perSite: 1,
    });
  });

  test('is kept when the last site is removed', async () => {
    const applier = dns('auto');
    await pass(applier, ...sites(2));
    await pass(applier);
    expect(await records()).toEqual([WILDCARD]);
  });

  test.each([
    [
      'does not cover a name with another record: the name gets an address record of its own (RFC 4592)',
      'shop-0-origin',
      ['shop-0-origin'],
    ],
    [
      'does not cover a name with a record below it: the name gets an address record of its own (RFC 4592)',
      '_acme-challenge.shop-0-preview',
      ['shop-0-preview'],
    ],
    ['covers all names if the other record is below a name that is no site’s', 'notes.elsewhere', []],
  ])('%s', async (_what, name, own) => {
    await plant({ type: 'TXT', name, content: '"theirs"' });
    const applier = dns('wildcard');
    await pass(applier, ...sites(1));
    expect((await planOf(applier, ...sites(1))).changes).toEqual([]);
    expect(await records()).toEqual(
      [
        WILDCARD,
        'shop-0.example.net AAAA 100::',
        `${name}.example.net TXT "theirs"`,
        ...own.map((one) => `${one}.example.net A ${HOST}`),
      ].toSorted(),
    );
    for (const one of namesOf(loadedManifest('shop-0', 0))) expect(resolve(one)).toBe(HOST);
  });

  test('does not replace a record of others that points a name elsewhere, which is a conflict', async () => {
    await plant({ type: 'A', name: 'shop-0-origin', content: '203.0.113.9' });
    const { conflicts, changes } = await planOf(dns('wildcard'), ...sites(1));
    expect(conflicts.map(({ key }) => key)).toEqual(['shop-0-origin.example.net/A']);
    expect(changes.map(({ key }) => key)).toEqual([
      'shop-0-preview.example.net/A',
      'shop-0.example.net/AAAA',
    ]);
  });

  test.each([
    ['of others', { type: 'A', content: HOST }],
    [
      'of another type',
      { type: 'CNAME', content: 'elsewhere.example', comment: 'tgy1 test tag-2 - 01234567' },
    ],
  ])('is not used where there is a wildcard %s already', async (_what, record) => {
    await plant({ name: '*', ...record });
    const applier = dns('wildcard');
    await pass(applier, ...sites(1));
    expect(
      (await records()).filter((one) => one.endsWith(` A ${HOST}`) && !one.startsWith('*')),
    ).toHaveLength(2);
    expect((await planOf(applier, ...sites(1))).changes).toEqual([]);
  });

  test('leads to one host: names of another host have their own records', async () => {
    await pass(dns('wildcard'), loadedManifest('first', 1));
    const second = dns('auto', { host: 'tag-2', hostAddress: OTHER_HOST });
    await pass(second, loadedManifest('second', 2));
    expect((await planOf(second, loadedManifest('second', 2))).changes).toEqual([]);
    expect(resolve('second-origin.example.net')).toBe(OTHER_HOST);
    expect(resolve('first-origin.example.net')).toBe(HOST);
    expect(second.quota?.()).toMatchObject({ perSite: 3 });
  });

  test('takes the place of another host’s records for a site that moves here, in one pass', async () => {
    const [here, there] = [dns('auto'), dns('auto', { host: 'tag-2', hostAddress: OTHER_HOST })];
    await pass(here, ...sites(1));
    const moving = loadedManifest('moving', 5);
    await pass(there, moving);
    expect(resolve('moving-origin.example.net')).toBe(OTHER_HOST);
    await pass(here, ...sites(1), moving);
    expect(await planOf(here, ...sites(1), moving)).toEqual({ changes: [], conflicts: [] });
    for (const name of namesOf(moving)) expect(resolve(name)).toBe(HOST);
    expect((await records()).filter((one) => one.startsWith('moving-'))).toEqual([]);
  });

  test('follows a new address of its host by one change', async () => {
    await pass(dns('wildcard'), ...sites(2));
    const moved = dns('wildcard', { hostAddress: OTHER_HOST });
    await pass(moved, ...sites(2));
    expect((await records()).filter((one) => one.includes(' A '))).toEqual([`*.example.net A ${OTHER_HOST}`]);
    expect((await planOf(moved, ...sites(2))).changes).toEqual([]);
  });

  test('is written anew where it was deleted, for all names by one call', async () => {
    const applier = dns('wildcard');
    await pass(applier, ...sites(3));
    world.emulator.db.exec("DELETE FROM records WHERE name = '*.example.net'");
    world.faulty.calls.length = 0;
    await pass(applier, ...sites(3));
    expect(world.faulty.calls.filter((call) => call.startsWith('POST'))).toHaveLength(1);
    expect(resolve('shop-2-preview.example.net')).toBe(HOST);
  });

  test.each<[string, object, boolean]>([
    ['with a name of others', { type: 'A', name: 'mail', content: '203.0.113.9' }, false],
    [
      'with a name of another instance',
      { type: 'A', name: 'x', content: HOST, comment: 'tgy1 o tag-1 x 01234567' },
      false,
    ],
    ['with text of others', { type: 'TXT', name: 'notes', content: '"text"' }, true],
    ['with an address of the zone itself', { type: 'A', name: '@', content: '203.0.113.9' }, true],
  ])('is written for a new instance in a zone %s: $2', async (_what, record, hasWildcard) => {
    await plant(record);
    await pass(dns('auto'), ...sites(1));
    expect((await records()).includes(WILDCARD)).toBe(hasWildcard);
  });
});

describe('an existing instance', () => {
  test('keeps a record for each name in the mode auto', async () => {
    await pass(dns('site'), ...sites(2));
    const applier = dns('auto');
    await pass(applier, ...sites(3));
    expect(await records()).toHaveLength(9);
    expect(applier.quota?.()).toMatchObject({ used: 9, perSite: 3 });
  });

  test('changes to the wildcard and back, and at every single step all names resolve', async () => {
    const all = sites(3);
    await pass(dns('site'), ...all);
    const check = () => {
      for (const site of all) for (const name of namesOf(site)) expect(resolve(name)).toBe(HOST);
    };
    async function steps(mode: 'site' | 'wildcard') {
      const applier = dns(mode);
      for (let number = 0; number < 3; number += 1) {
        for (const change of (await planOf(applier, ...all)).changes) {
          expect(change).toMatchObject(
            mode === 'wildcard' ? { op: 'update', observed: { outdated: true } } : {},
          );
          await applier.apply(change, signal);
          check();
        }
      }
      expect((await planOf(applier, ...all)).changes).toEqual([]);
    }
    await steps('wildcard');
    expect(await records()).toHaveLength(4);
    await steps('site');
    // The wildcard stays: a site that this host can't read now may need it.
    expect(await records()).toHaveLength(10);
  });

  test('changes to the wildcard in a zone without room for it', async () => {
    const all = sites(3);
    await pass(dns('site'), ...all);
    limitRecords(world, 9);
    const applier = dns('wildcard');
    await pass(applier, ...all);
    await pass(applier, ...all);
    expect(await records()).toHaveLength(4);
    for (const site of all) for (const name of namesOf(site)) expect(resolve(name)).toBe(HOST);
  });
});

describe('a zone that takes no more records', () => {
  const OWN_NAMES = ['shop-0-origin', 'shop-0-preview'];
  test.each([
    ['the wildcard, if it can replace records', 'site', [], /\. Set DNS_RECORD_MODE=wildcard /],
    ['no wildcard, if names need their own records', 'site', OWN_NAMES, /\. Delete records, or move [^_]*$/],
    ['no wildcard, if it is already in use', 'wildcard', [], /\. Delete records, or move [^_]*$/],
  ] as const)('gives an error that suggests %s', async (_what, mode, theirs, remedy) => {
    for (const name of theirs) await plant({ type: 'TXT', name, content: '"theirs"' });
    limitRecords(world, theirs.length);
    const outcomes = await pass(dns(mode), ...sites(1));
    expect(outcomes).toEqual(
      Array(3).fill({
        status: 'rejected',
        reason: expect.objectContaining({
          name: 'QuotaReachedError',
          message: expect.stringMatching(remedy),
        }),
      }),
    );
  });

  test('takes the changes that need no new record, and as many new records as fit, in few calls', async () => {
    const applier = dns('site');
    const [first, ...others] = sites(40);
    if (first === undefined) throw new Error('there is no site');
    await pass(applier, first);
    const { changes } = await planOf(applier, ...others);
    limitRecords(world, 20);
    world.faulty.calls.length = 0;
    const outcomes = await Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
    const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(errors.every((error) => error instanceof QuotaReachedError)).toBe(true);
    // The first site was removed in the same batch: its three records made room.
    expect(await records()).toHaveLength(20);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3 + 20);
    expect(world.faulty.calls.length).toBeLessThan(25);
  });
});
