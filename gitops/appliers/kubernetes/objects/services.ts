import type { KubernetesObject } from '../../../clients/kubernetes/kinds.ts';
import { CONTAINER_ROLES, type LoadedManifest } from '../../../manifest/containers.ts';
import { objectName, podSelector, siteMetadata } from './names.ts';
import type { ClusterSettings } from './settings.ts';

/** A Service for each role, on the port on which its pods listen. */
export function services(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject[] {
  return CONTAINER_ROLES.map((role) => {
    const port = manifest.ports[role];
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: siteMetadata(objectName(manifest.site, role), manifest, settings),
      spec: {
        type: 'ClusterIP',
        selector: podSelector(manifest.site, role, settings),
        // With no protocol written, every apply would differ from what is stored.
        ports: [{ name: 'http', port, targetPort: port, protocol: 'TCP' }],
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        ipFamilyPolicy: 'SingleStack',
      },
    };
  });
}
