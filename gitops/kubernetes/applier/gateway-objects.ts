import { hash16 } from '../../../base/ownership.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { provenHosts, vhostOptionsOf } from '../../../sites/manifest/schema.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import type { InstanceDocument, SiteDocument } from '../delivery/documents.ts';
import { type Delivered, deliverySecret } from '../delivery/secrets.ts';
import { namespaceOf, objectName, policyName, siteLabels } from './objects/names.ts';
import { isOnDemand } from './objects/scale.ts';
import type { ClusterSettings } from './objects/settings.ts';

/** How the names of a site's Secrets begin: of the one with its public names, and the one with its policy script. */
export const SITE_PREFIX = 'tagyard-site-';
export const POLICY_PREFIX = 'tagyard-policy-';

interface Place extends Pick<ClusterSettings, 'identity' | 'namespace'> {
  /** The namespace of the gateways. */
  readonly gatewayNamespace: string;
}

/** The certificate of a name with its chain, and its key: PEM. */
export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

/** The Secret by which a gateway serves a site's names; a pure function. */
export function siteDelivery(manifest: LoadedManifest, place: Place): KubernetesObject {
  const { site, hostnames, ports, client } = manifest;
  const options = vhostOptionsOf(manifest);
  const podsOf = (role: 'processing' | 'preview') => ({
    namespace: namespaceOf(client, place),
    service: objectName(site, role),
    port: ports[role],
  });
  const document: SiteDocument = {
    version: 1,
    site,
    names: [
      { kind: 'origin', host: hostnames.origin, ...podsOf('processing'), options },
      {
        kind: 'preview',
        host: hostnames.preview,
        ...podsOf('preview'),
        options: vhostOptionsOf(manifest, 'preview'),
        onDemand: isOnDemand(manifest, place) ? objectName(site, 'preview') : undefined,
      },
      ...provenHosts(manifest).map(
        (host) => ({ kind: 'custom', host, edgeHost: hostnames.edge, options }) as const,
      ),
    ],
  };
  return secretOf(`${SITE_PREFIX}${site}`, { kind: 'site', document }, place, siteLabels(manifest, place));
}

/** The Secret by which a gateway serves a site's policy script; a pure function. `null`: the site has none. */
export function policyDelivery(
  manifest: LoadedManifest,
  token: string,
  place: Place,
): KubernetesObject | null {
  const { site, policy } = manifest;
  if (policy === undefined) return null;
  const names = [{ kind: 'policy', host: policyName(site), token, script: policy.text } as const];
  const document: SiteDocument = { version: 1, site, names };
  return secretOf(`${POLICY_PREFIX}${site}`, { kind: 'site', document }, place, siteLabels(manifest, place));
}

/** The Secret with what is common to all names; a pure function. */
export function instanceDelivery(document: InstanceDocument, place: Place): KubernetesObject {
  return secretOf('tagyard-instance', { kind: 'instance', document }, place, sharedLabels(place));
}

/**
 * A pure function: the Secret of a certificate. Each has its own. For a name, gateways serve the one that expires last.
 */
export function certificateDelivery({ cert, key }: PemPair, place: Place): KubernetesObject {
  const name = `tagyard-tls-${hash16(`${cert}\n${key}`)}`;
  return secretOf(name, { kind: 'certificate', cert, key }, place, sharedLabels(place));
}

function sharedLabels({ identity }: Place) {
  return {
    'app.kubernetes.io/managed-by': 'tagyard',
    'tagyard/instance': identity.instance,
    'tagyard/host': identity.host,
  };
}

function secretOf(name: string, delivered: Delivered, place: Place, common: object): KubernetesObject {
  const { labels, type, data } = deliverySecret(delivered);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: place.gatewayNamespace, labels: { ...common, ...labels } },
    type,
    data,
  };
}
