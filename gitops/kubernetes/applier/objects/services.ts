import { CONTAINER_ROLES, type LoadedManifest } from '../../../../sites/manifest/containers.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { objectName, podSelector, policyName, siteMetadata } from './names.ts';
import type { ClusterSettings } from './settings.ts';

/**
 * A Service for each role, on the port on which its pods listen; and one that leads the policy script's name to the
 * gateways.
 */
export function services(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject[] {
  const ofPods = CONTAINER_ROLES.map((role): KubernetesObject => {
    const port = manifest.ports[role];
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: siteMetadata(objectName(manifest.site, role), manifest, settings),
      spec: {
        type: 'ClusterIP',
        selector: podSelector(manifest.site, role, settings),
        // Without a protocol, every apply would differ from what is stored.
        ports: [{ name: 'http', port, targetPort: port, protocol: 'TCP' }],
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        ipFamilyPolicy: 'SingleStack',
      },
    };
  });
  const { policyScripts } = settings;
  if (manifest.policy === undefined || policyScripts === undefined) return ofPods;
  return [
    ...ofPods,
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: siteMetadata(policyName(manifest.site), manifest, settings),
      // The cluster's DNS answers the policy script's name with the address of the gateways' Service.
      spec: { type: 'ExternalName', externalName: policyScripts.service, sessionAffinity: 'None' },
    },
  ];
}
