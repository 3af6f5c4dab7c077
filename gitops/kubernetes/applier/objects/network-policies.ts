import {
  CONTAINER_ROLES,
  type ContainerRole,
  type LoadedManifest,
} from '../../../../sites/manifest/containers.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { objectName, podSelector, siteMetadata } from './names.ts';
import type { ClusterSettings } from './settings.ts';

/** Ranges that a pod must not reach: the cluster, its nodes, other private networks and metadata services. */
const PRIVATE = {
  '0.0.0.0/0': [
    '10.0.0.0/8',
    '100.64.0.0/10',
    // Azure's metadata service has a public address.
    '168.63.129.16/32',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.168.0.0/16',
  ],
  '::/0': ['fc00::/7', 'fe80::/10'],
};
/** Where a cluster with a DNS cache on each node answers DNS. */
const NODE_LOCAL_DNS = '169.254.20.10/32';

/**
 * Who may connect to a site's pods, and where these may connect to: DNS, public addresses, and from processing to the
 * site's own preview and the gateways. All else is refused, because the policies select the pods for both directions.
 */
export function networkPolicies(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject[] {
  const podsOf = (role: ContainerRole) => ({
    podSelector: { matchLabels: podSelector(manifest.site, role, settings) },
  });
  const portOf = (role: ContainerRole) => [{ port: manifest.ports[role], protocol: 'TCP' }];
  return CONTAINER_ROLES.map((role) => {
    const from = [...admitted(settings), ...(role === 'preview' ? [podsOf('processing')] : [])];
    return {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: siteMetadata(objectName(manifest.site, role), manifest, settings),
      spec: {
        ...podsOf(role),
        policyTypes: ['Ingress', 'Egress'],
        // A rule with an empty list would let all in.
        ...(from.length === 0 ? {} : { ingress: [{ from, ports: portOf(role) }] }),
        egress: [
          {
            to: [{ namespaceSelector: {} }, { ipBlock: { cidr: NODE_LOCAL_DNS } }],
            ports: ['UDP', 'TCP'].map((protocol) => ({ port: 53, protocol })),
          },
          { to: Object.entries(PRIVATE).map(([cidr, except]) => ({ ipBlock: { cidr, except } })) },
          ...(role === 'processing'
            ? [{ to: [podsOf('preview')], ports: portOf('preview') }, ...toGateway(settings)]
            : []),
        ],
      },
    };
  });
}

function admitted({ gatewayNamespace, admitCidrs }: ClusterSettings): object[] {
  return gatewayNamespace === null
    ? admitCidrs.map((cidr) => ({ ipBlock: { cidr } }))
    : [podsIn(gatewayNamespace)];
}

/** The preview's public name leads to the gateway, whose pods have private addresses. */
function toGateway({ gatewayNamespace }: ClusterSettings): object[] {
  return gatewayNamespace === null ? [] : [{ to: [podsIn(gatewayNamespace)], ports: [{ protocol: 'TCP' }] }];
}

function podsIn(namespace: string): object {
  return { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } };
}
