import { kvApplier } from '../../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../../gitops/appliers/edge/route.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { EMULATOR_SCRIPT, EMULATOR_ZONE } from '../../../support/cloudflare/emulator.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../conformance.ts';

const kvOf = ({ client, store, clock }: CloudflareWorld) =>
  kvApplier({ client, store, clock, identity: CONFORMANCE_IDENTITY, settings: { originPort: 443 } });

applierConformance(
  'Workers KV',
  async () => {
    const world = await cloudflareWorld();
    const { emulator } = world;
    return {
      ...world,
      applier: kvOf(world),
      async plantForeign({ spec: { namespace, key } }) {
        const id = emulator.namespaces.get(namespace)?.id;
        const path = `/accounts/${emulator.account}/storage/kv/namespaces/${id}`;
        await emulator.call('PUT', `${path}/bulk`, [
          { key, value: 'theirs', metadata: { owner: 'a stranger' } },
        ]);
        return async () => (await emulator.call('GET', `${path}/values/${key}`)).text;
      },
    };
  },
  { change: (manifest) => ({ ...manifest, features: { ...manifest.features, multi_domain: true } }) },
);

applierConformance(
  'Workers routes',
  async () => {
    const world = await cloudflareWorld();
    const { emulator, client, store } = world;
    const routes = `/zones/${emulator.zone.id}/workers/routes`;
    const kv = kvOf(world);
    const { signal } = new AbortController();
    return {
      ...world,
      applier: routeApplier({
        client,
        store,
        identity: CONFORMANCE_IDENTITY,
        zoneId: emulator.zone.id,
        scriptName: EMULATOR_SCRIPT,
        domain: EMULATOR_ZONE,
        mode: 'site',
        limit: 1_000,
      }),
      async prepare(manifest: LoadedManifest) {
        const desired = kv.desired(manifest);
        const { changes } = kv.plan(desired, []);
        await Promise.all(changes.map((change) => kv.apply(change, signal)));
      },
      async plantForeign({ spec: { pattern } }) {
        // Operators create a route without a script on purpose, to keep the worker off an address.
        const { json } = await emulator.call('POST', routes, { pattern });
        return async () => (await emulator.call('GET', `${routes}/${json.result.id}`)).json;
      },
    };
  },
  {
    change: (manifest) => ({
      ...manifest,
      hostnames: { ...manifest.hostnames, edge: 'acme-shop-moved.example.net' },
    }),
  },
);
