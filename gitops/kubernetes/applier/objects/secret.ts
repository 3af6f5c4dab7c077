import { contentHash } from '../../../../base/ownership.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import type { Secret } from '../../../../sites/manifest/secrets.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { siteMetadata } from './names.ts';
import type { ClusterSettings } from './settings.ts';

/** The keys of a site's Secret. */
export const SECRET_KEYS = {
  config: 'CONTAINER_CONFIG',
  account: 'service-account.json',
  ca: 'ca.pem',
} as const;

/** How many hex digits of the content's hash a name has: with the longest site id, it then has 63 characters. */
const DIGITS = 10;

/** The name of a site's Secret: another content is another Secret, and earlier pods keep theirs. */
export function secretName(manifest: LoadedManifest, settings: ClusterSettings): string {
  const { site, config, serviceAccountKey } = manifest;
  const ca = trustedCa(manifest, settings);
  const content = {
    config: config.fingerprint,
    account: serviceAccountKey?.fingerprint,
    ...(ca === null ? {} : { ca }),
  };
  return `tag-${site}-${contentHash(content).slice(0, DIGITS)}`;
}

/** The authority that a site's processing server trusts in addition to Node's own: PEM; `null`: none. */
export function trustedCa(
  { policy }: Pick<LoadedManifest, 'policy'>,
  { policyScripts }: Pick<ClusterSettings, 'policyScripts'>,
): string | null {
  return policy === undefined ? null : (policyScripts?.ca ?? null);
}

/**
 * The Secret of a site, with what its pods' specs must not show (CONTAINER_CONFIG and the key of its service account),
 * and with the authority that they read from a file.
 */
export function siteSecret(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject {
  const { config, serviceAccountKey } = manifest;
  const ca = trustedCa(manifest, settings);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: siteMetadata(secretName(manifest, settings), manifest, settings),
    type: 'Opaque',
    immutable: true,
    data: {
      [SECRET_KEYS.config]: encoded(config),
      ...(serviceAccountKey === undefined ? {} : { [SECRET_KEYS.account]: encoded(serviceAccountKey) }),
      ...(ca === null ? {} : { [SECRET_KEYS.ca]: Buffer.from(ca).toString('base64') }),
    },
  };
}

function encoded(secret: Secret): string {
  return Buffer.from(secret.reveal()).toString('base64');
}
