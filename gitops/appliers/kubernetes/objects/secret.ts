import { contentHash } from '../../../base/ownership.ts';
import type { KubernetesObject } from '../../../clients/kubernetes/kinds.ts';
import type { LoadedManifest } from '../../../manifest/containers.ts';
import type { Secret } from '../../../manifest/secrets.ts';
import { siteMetadata } from './names.ts';
import type { ClusterSettings } from './settings.ts';

/** The keys of a site's Secret. */
export const SECRET_KEYS = { config: 'CONTAINER_CONFIG', account: 'service-account.json' } as const;

/** Hex digits of the content's hash: a name of the longest id then has 63 characters. */
const DIGITS = 10;

/** The name of a site's Secret: another content is another Secret, and pods of before keep theirs. */
export function secretName({ site, config, serviceAccountKey }: LoadedManifest): string {
  const content = { config: config.fingerprint, account: serviceAccountKey?.fingerprint };
  return `tag-${site}-${contentHash(content).slice(0, DIGITS)}`;
}

/** What the containers of a site must not show: CONTAINER_CONFIG and the key of its service account. */
export function siteSecret(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject {
  const { config, serviceAccountKey } = manifest;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: siteMetadata(secretName(manifest), manifest, settings),
    type: 'Opaque',
    immutable: true,
    data: {
      [SECRET_KEYS.config]: encoded(config),
      ...(serviceAccountKey === undefined ? {} : { [SECRET_KEYS.account]: encoded(serviceAccountKey) }),
    },
  };
}

/**
 * What owns a Secret, pure: its presence says that the Secret is there, which can't be read, and the cluster removes the
 * Secret after it (`metadata.ownerReferences`).
 */
export function secretRecord({ metadata }: KubernetesObject): KubernetesObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true };
}

/** The Secret as `record`, an object of the cluster, owns it. */
export function ownedBy(record: KubernetesObject, secret: KubernetesObject): KubernetesObject {
  const { apiVersion, kind, metadata } = record;
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '' };
  return { ...secret, metadata: { ...secret.metadata, ownerReferences: [owner] } };
}

function encoded(secret: Secret): string {
  return Buffer.from(secret.reveal()).toString('base64');
}
