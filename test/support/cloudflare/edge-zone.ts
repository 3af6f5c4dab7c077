import type { Applier } from '../../../gitops/appliers/contract.ts';
import { kvApplier } from '../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../gitops/appliers/edge/route.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { loadedManifest } from '../manifest.ts';
import { EMULATOR_SCRIPT } from './emulator.ts';
import type { CloudflareWorld } from './world.ts';

const { signal } = new AbortController();
const identity = { instance: 'test', host: 'tag-1' };

/** The edge's appliers, and functions that plan and apply with them, in the world that `current` returns. */
export function edgeZone(current: () => CloudflareWorld) {
  const kv = () => kvApplier({ ...current(), identity, settings: { originPort: 443 } });
  const routeOptions = () => ({
    ...current(),
    identity,
    zoneId: current().emulator.zone.id,
    scriptName: EMULATOR_SCRIPT,
    domain: 'example.net',
    mode: 'site' as 'auto' | 'site' | 'wildcard',
    limit: 1_000,
  });
  const wildcardRoutes = () => routeApplier({ ...routeOptions(), mode: 'wildcard' });
  const routes = async (): Promise<{ pattern: string }[]> =>
    (await current().emulator.call('GET', `/zones/${current().emulator.zone.id}/workers/routes`)).json.result;
  const sites = (count: number) =>
    Array.from({ length: count }, (_, number) =>
      loadedManifest(`shop-${String(number).padStart(3, '0')}`, number),
    );

  async function planOf<S, R>(applier: Applier<S, R>, ...manifests: LoadedManifest[]) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    return applier.plan(desired, await applier.observe(desired, signal));
  }
  async function converge<S, R>(applier: Applier<S, R>, ...manifests: LoadedManifest[]) {
    const { changes } = await planOf(applier, ...manifests);
    return Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
  }

  return { kv, routeOptions, wildcardRoutes, routes, sites, planOf, converge };
}
