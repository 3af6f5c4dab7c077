import type { ContainerRole } from '../../../../sites/manifest/containers.ts';
import type { Manifest } from '../../../../sites/manifest/schema.ts';
import type { ClusterSettings } from './settings.ts';

type Named = Pick<Manifest, 'site' | 'client'>;
type Placed = Pick<ClusterSettings, 'identity' | 'namespace'>;

/** The namespace of a client's objects. Its longest name has 57 characters; a DNS label has at most 63. */
export function namespaceOf(client: string, { identity, namespace }: Placed): string {
  return namespace ?? `tagyard-${identity.instance}-${client}`;
}

/** The name of a site's objects of one role: of at most 63 characters, and beginning with a letter, for Services. */
export function objectName(site: string, role: ContainerRole): string {
  return `tag-${site}-${role}`;
}

/** The name under which a site's policy script is served: of at most 59 characters, and beginning with a letter. */
export function policyName(site: string): string {
  return `tag-${site}-policy`;
}

/** The labels of the objects of a client that belong to none of its sites. */
export function clientLabels(client: string, { identity }: Pick<ClusterSettings, 'identity'>) {
  return {
    'app.kubernetes.io/managed-by': 'tagyard',
    'tagyard/instance': identity.instance,
    'tagyard/host': identity.host,
    'tagyard/client': client,
  };
}

export function siteLabels({ site, client }: Named, settings: Pick<ClusterSettings, 'identity'>) {
  return { ...clientLabels(client, settings), 'tagyard/site': site };
}

/** Selects the pods of one role. A Deployment's selector can't be changed, so it names only what never changes. */
export function podSelector(
  site: string,
  role: ContainerRole,
  { identity }: Pick<ClusterSettings, 'identity'>,
) {
  return { 'tagyard/instance': identity.instance, 'tagyard/site': site, 'tagyard/role': role };
}

/** What is common to the metadata of a site's objects. */
export function siteMetadata(name: string, manifest: Named, settings: Placed) {
  return {
    name,
    namespace: namespaceOf(manifest.client, settings),
    labels: siteLabels(manifest, settings),
  };
}
