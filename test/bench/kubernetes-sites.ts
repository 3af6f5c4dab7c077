import { contentHash } from '../../base/ownership.ts';
import { clientObjects, footprintOf } from '../../gitops/kubernetes/applier/objects/client.ts';
import { initialReplicas } from '../../gitops/kubernetes/applier/objects/scale.ts';
import type { ClusterSettings } from '../../gitops/kubernetes/applier/objects/settings.ts';
import { siteObjects } from '../../gitops/kubernetes/applier/objects/site.ts';
import { NO_SITE, withMark } from '../../gitops/kubernetes/applier/state/mark.ts';
import type { KubernetesObject } from '../../gitops/kubernetes/client/kinds.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { Secret } from '../../sites/manifest/secrets.ts';
import { loadedManifest } from '../support/manifest.ts';

/** This many sites belong to one client. */
const OF_CLIENT = 20;
export const IDENTITY = { instance: 'bench', host: 'tag-1' };
export const ORDINAL = 1;
export const ADMITTED = '198.18.0.0/15';
const SETTINGS: ClusterSettings = {
  identity: IDENTITY,
  namespace: null,
  admitCidrs: [ADMITTED],
  gatewayNamespace: null,
  originPort: 443,
  edition: () => '0',
};

/** A measured site. Another `env` is a changed configuration. */
export function siteOf(number: number, env = '1'): LoadedManifest {
  const client = String(Math.floor(number / OF_CLIENT)).padStart(12, '0');
  const config = Buffer.from(`id=GTM-SERVER1&env=${env}&auth=s3cret-auth-t0ken-${number}`);
  return {
    ...loadedManifest(`site-${number}`, number),
    client: `7c9e6679-7425-40de-944b-${client}`,
    config: new Secret(config.toString('base64')),
  };
}

/**
 * The objects that the appliers apply for these sites, as one list with the namespaces first. Each Deployment states
 * its number of pods, as it does at its creation.
 */
export function renderedSites(sites: readonly LoadedManifest[]): readonly KubernetesObject[] {
  const clients = [...Map.groupBy(sites, ({ client }) => client)].flatMap(([client, own]) =>
    clientObjects(client, SETTINGS, footprintOf(own)).map((object) => marked(object, NO_SITE)),
  );
  const objects = sites.flatMap((site) =>
    siteObjects(site, SETTINGS).map((object) => marked(withReplicas(object, site), site.site)),
  );
  const isNamespace = ({ kind }: KubernetesObject) => kind === 'Namespace';
  return [...clients.filter(isNamespace), ...clients.filter((object) => !isNamespace(object)), ...objects];
}

function marked(object: KubernetesObject, site: string): KubernetesObject {
  return withMark(object, { identity: IDENTITY, site, hash: contentHash(object), ordinal: ORDINAL });
}

function withReplicas(object: KubernetesObject, site: LoadedManifest): KubernetesObject {
  if (object.kind !== 'Deployment') return object;
  return { ...object, spec: { replicas: initialReplicas(site), ...(object.spec as object) } };
}
