import { afterEach, expect, test } from 'vitest';
import type { Applier } from '../../../gitops/appliers/contract.ts';
import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import { cloudflareDns } from '../../../gitops/appliers/dns/cloudflare.ts';
import { kvApplier } from '../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../gitops/appliers/edge/route.ts';
import { edgeStore } from '../../../gitops/appliers/edge/store.ts';
import { EMULATOR_SCRIPT, EMULATOR_ZONE } from '../../support/cloudflare/emulator.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../support/cloudflare/world.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { CONFORMANCE_IDENTITY as identity } from './conformance.ts';

const { signal } = new AbortController();
const SITES = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];
let world: CloudflareWorld;
afterEach(() => world.close());

/** The appliers that work on Cloudflare; with pages of two, eight sites fill many. */
function appliers({ client, clock, emulator }: CloudflareWorld, pageSize: number): Applier[] {
  const store = edgeStore(client, EMULATOR_SCRIPT, pageSize);
  const zoneId = emulator.zone.id;
  const provider = cloudflareDns({ client, zoneId, pageSize });
  return [
    kvApplier({ client, store, clock, identity, settings: { originPort: 443 } }),
    routeApplier({
      ...{ client, store, identity, zoneId, scriptName: EMULATOR_SCRIPT },
      ...{ domain: EMULATOR_ZONE, mode: 'site', limit: 1_000 },
    }),
    dnsApplier({ provider, identity, zone: EMULATOR_ZONE, hostAddress: '198.51.100.4' }),
  ];
}

test.each([
  ['asks for one site’s names alone where that takes fewer calls than all pages', 2, true],
  ['lists everything where that is one page', 5000, false],
])('an observation of one site %s', async (_what, pageSize, byName) => {
  world = await cloudflareWorld();
  const manifests = SITES.map((site, number) => loadedManifest(site, number));
  const [one] = manifests;
  if (one === undefined) throw new Error('there is no site');
  let calls = 0;
  for (const applier of appliers(world, pageSize)) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    const { changes } = applier.plan(desired, await applier.observe(desired, signal));
    await Promise.all(changes.map((change) => applier.apply(change, signal)));
    expect(applier.plan(desired, await applier.observe(desired, signal)).changes).toEqual([]);

    const wanted = applier.desired(one);
    const keys = new Set(wanted.map(({ key }) => key));
    const before = world.faulty.calls.length;
    const found = await applier.observe(wanted, signal, { sites: new Set([one.site]), keys });
    calls += world.faulty.calls.length - before;
    expect(
      applier.plan(
        wanted,
        found.filter(({ key }) => keys.has(key)),
      ).changes,
    ).toEqual([]);
    expect(found.length === wanted.length).toBe(byName);
  }
  // Calls by name: 4 of KV, 2 for routes (their list, and the routing entry as their witness), 3 of DNS. Whole: 4, 2, 1.
  expect(calls).toBe(byName ? 9 : 7);
});
