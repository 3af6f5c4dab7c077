import fc from 'fast-check';
import type { ClusterSettings } from '../../../gitops/kubernetes/applier/objects/settings.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { loadedManifest } from '../manifest.ts';

/** A cluster with a namespace for each client, and no gateway. */
export const CLUSTER: ClusterSettings = {
  identity: { instance: 'tagyard', host: 'tag-1' },
  namespace: null,
  admitCidrs: ['198.18.0.0/15', '2001:db8::/32'],
  gatewayNamespace: null,
  originPort: 443,
  edition: () => '0',
};

/** A site with the key of a service account, so that its pods mount a file. */
export function withAccount(manifest: LoadedManifest): LoadedManifest {
  const key = '-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n';
  const serviceAccount = {
    clientEmail: 'tags@acme.iam.gserviceaccount.com',
    projectId: 'acme',
    keyId: '0123',
    key,
  };
  return { ...manifest, serviceAccount, serviceAccountKey: new Secret('{}') };
}

const ENDS = [...'abcdefghijklmnopqrstuvwxyz0123456789'];
const siteIds = fc
  .tuple(
    fc.constantFrom(...ENDS),
    fc.array(fc.constantFrom(...ENDS, '-'), { maxLength: 46 }),
    fc.constantFrom(...ENDS),
  )
  .map(([first, middle, last]) => `${first}${middle.join('')}${last}`);
const memory = fc
  .tuple(fc.integer({ min: 1, max: 999_999 }), fc.constantFrom('m', 'g'))
  .map(([amount, unit]) => `${amount}${unit}`);
const cpus = fc.double({ min: 0.000_001, max: 1, noNaN: true });
const count = fc.integer({ min: 1, max: 16 });
const replicas = fc.oneof(
  count,
  fc.tuple(count, count).map(([one, other]) => ({ min: Math.min(one, other), max: Math.max(one, other) })),
);

/** Valid manifests that differ in site id, ports, resources and service account. */
export const manifests: fc.Arbitrary<LoadedManifest> = fc
  .record({
    site: siteIds,
    processing: fc.record({ memory, cpus, replicas }),
    requested: fc.option(fc.record({ memory: fc.boolean(), cpus: fc.boolean() })),
    preview: fc.record({ memory, cpus }),
    ports: fc.uniqueArray(fc.integer({ min: 1024, max: 65_535 }), { minLength: 2, maxLength: 2 }),
    hasAccount: fc.boolean(),
  })
  .map(({ site, processing, requested, preview, ports, hasAccount }) => {
    // The limit itself is the most that may be requested.
    const requests = {
      ...(requested?.memory ? { memory: processing.memory } : {}),
      ...(requested?.cpus ? { cpus: processing.cpus } : {}),
    };
    const manifest = loadedManifest('acme-shop', 0, {
      site,
      ports: { processing: ports[0] ?? 0, preview: ports[1] ?? 0 },
      resources: { processing: { ...processing, ...(requested === null ? {} : { requests }) }, preview },
    });
    return hasAccount ? withAccount(manifest) : manifest;
  });
