import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dnsZone, HOST, OTHER_HOST, WILDCARD } from '../../../support/cloudflare/dns-zone.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { loadedManifest } from '../../../support/manifest.ts';

let world: CloudflareWorld;
beforeEach(async () => {
  world = await cloudflareWorld();
});
afterEach(() => world.close());
const { dns, sites, plant, forget, edit, records, planOf, pass, resolve } = dnsZone(() => world);

describe('where others’ records come and go at or below a covered name', () => {
  const origin = 'shop-0-origin.example.net';
  const ownOfOrigin = async () => (await records()).filter((one) => one === `${origin} A ${HOST}`);

  test.each(['shop-0-origin', '_acme-challenge.shop-0-origin'])(
    'a name gets a record of its own for good: %s',
    async (name) => {
      const challenge = { type: 'TXT', name, content: '"theirs"' };
      const applier = dns('wildcard');
      await pass(applier, ...sites(1));
      await plant(challenge);
      // The name has no address until the next full pass, which is the first to see the challenge.
      expect(resolve(origin)).toBeNull();
      await pass(applier, ...sites(1));
      expect(resolve(origin)).toBe(HOST);
      for (let renewal = 0; renewal < 2; renewal += 1) {
        forget(name, 'TXT');
        for (const one of [applier, dns('wildcard')]) {
          expect(await planOf(one, ...sites(1))).toEqual({ changes: [], conflicts: [] });
        }
        expect(await ownOfOrigin()).toHaveLength(1);
        await plant(challenge);
        expect(resolve(origin)).toBe(HOST);
        expect((await planOf(applier, ...sites(1))).changes).toEqual([]);
      }
    },
  );

  test('a name’s own record that is older than the wildcard is marked as kept, and stays', async () => {
    await plant({ type: 'TXT', name: '_acme-challenge.shop-0-origin', content: '"theirs"' });
    await pass(dns('site'), ...sites(1));
    const applier = dns('wildcard');
    await pass(applier, ...sites(1));
    forget('_acme-challenge.shop-0-origin');
    await pass(applier, ...sites(1));
    expect(await ownOfOrigin()).toHaveLength(1);
    expect((await planOf(applier, ...sites(1))).changes).toEqual([]);
    expect((await records()).filter((one) => one.startsWith('shop-0-preview'))).toEqual([]);
  });

  test('a name’s own record follows a new address, is repaired, and is deleted with its site', async () => {
    await plant({ type: 'TXT', name: '_acme-challenge.shop-0-origin', content: '"theirs"' });
    await pass(dns('wildcard'), ...sites(1));
    forget('_acme-challenge.shop-0-origin');
    const moved = dns('wildcard', { hostAddress: OTHER_HOST });
    await pass(moved, ...sites(1));
    await edit(origin, { content: '203.0.113.9' });
    await pass(moved, ...sites(1));
    expect(await records()).toContain(`${origin} A ${OTHER_HOST}`);
    expect((await planOf(moved, ...sites(1))).changes).toEqual([]);
    await pass(moved);
    expect(await records()).toEqual([`*.example.net A ${OTHER_HOST}`]);
  });

  test('a name’s own record stays as it is with DNS_RECORD_MODE=site', async () => {
    await plant({ type: 'TXT', name: '_acme-challenge.shop-0-origin', content: '"theirs"' });
    await pass(dns('wildcard'), ...sites(1));
    const back = dns('site');
    expect((await planOf(back, ...sites(1))).changes).toMatchObject([
      { op: 'create', key: 'shop-0-preview.example.net/A' },
    ]);
  });

  test('a record that another host made for a site that moved here does not stay', async () => {
    await pass(dns('wildcard'), ...sites(1));
    await pass(dns('site', { host: 'tag-2', hostAddress: OTHER_HOST }), loadedManifest('moved', 2));
    const applier = dns('wildcard');
    const all = [...sites(1), loadedManifest('moved', 2)];
    for (let number = 0; number < 2; number += 1) await pass(applier, ...all);
    expect(await planOf(applier, ...all)).toEqual({ changes: [], conflicts: [] });
    expect(await records()).toEqual([
      WILDCARD,
      'moved.example.net AAAA 100::',
      'shop-0.example.net AAAA 100::',
    ]);
  });
});
