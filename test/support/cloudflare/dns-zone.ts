import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import { cloudflareDns } from '../../../gitops/appliers/dns/cloudflare.ts';
import { zoneResolver } from '../../../sites/local/cloudflare/dns/resolver.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { loadedManifest } from '../manifest.ts';
import type { CloudflareWorld } from './world.ts';

export const HOST = '198.51.100.4';
export const OTHER_HOST = '198.51.100.5';
export const WILDCARD = `*.example.net A ${HOST}`;
export const { signal: SIGNAL } = new AbortController();

/** The DNS records of sites in an emulator's zone. Each call uses the world that `world` returns at that moment. */
export function dnsZone(world: () => CloudflareWorld) {
  const path = () => `/zones/${world().emulator.zone.id}/dns_records`;
  const dns = (mode: 'auto' | 'site' | 'wildcard', { host = 'tag-1', hostAddress = HOST } = {}) =>
    dnsApplier({
      provider: cloudflareDns({ client: world().client, zoneId: world().emulator.zone.id }),
      identity: { instance: 'test', host },
      zone: 'example.net',
      hostAddress,
      mode,
      quota: async () => 200,
    });
  type Dns = ReturnType<typeof dns>;
  async function planOf(applier: Dns, ...manifests: LoadedManifest[]) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    return applier.plan(desired, await applier.observe(desired, SIGNAL));
  }
  return {
    dns,
    planOf,
    async pass(applier: Dns, ...manifests: LoadedManifest[]) {
      const { changes } = await planOf(applier, ...manifests);
      return Promise.allSettled(changes.map((change) => applier.apply(change, SIGNAL)));
    },
    sites: (count: number) =>
      Array.from({ length: count }, (_, number) => loadedManifest(`shop-${number}`, number)),
    plant: (record: object) => world().emulator.call('POST', path(), record),
    /** Each record as `<name> <type> <content>`, sorted. */
    async records(): Promise<string[]> {
      const { json } = await world().emulator.call('GET', `${path()}?per_page=5000`);
      const all: { name: string; type: string; content: string }[] = json.result;
      return all.map(({ name, type, content }) => `${name} ${type} ${content}`).toSorted();
    },
    forget: (name: string, type = '%') =>
      world()
        .emulator.db.prepare('DELETE FROM records WHERE name = ? AND type LIKE ?')
        .run(`${name}.example.net`, type),
    async edit(name: string, changes: object) {
      const { json } = await world().emulator.call('GET', `${path()}?name=${name}`);
      await world().emulator.call('PATCH', `${path()}/${json.result[0].id}`, changes);
    },
    resolve: (name: string) => zoneResolver(world().emulator.db)(name),
    namesOf: ({ hostnames }: LoadedManifest) => [hostnames.origin, hostnames.preview],
  };
}
