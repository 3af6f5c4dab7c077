import type { Manifest } from '../../../../sites/manifest/schema.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { SURGE } from './deployments.ts';
import { clientLabels, namespaceOf } from './names.ts';
import { cpuQuantity, memoryQuantity } from './quantities.ts';
import { type Amount, podResources } from './resources.ts';
import { scaleOf } from './scale.ts';
import type { ClusterSettings } from './settings.ts';

/** The most that the pods of a client's sites may need together. */
interface Footprint {
  readonly pods: number;
  readonly requests: Amount;
  readonly limits: Amount;
}

/**
 * The footprint of a client's sites on this host. It has room for a rollout: a pod that ends counts until it is gone,
 * so for a time there may be twice as many, plus those that a rollout makes beside the old ones.
 */
export function footprintOf(manifests: readonly Pick<Manifest, 'resources'>[]): Footprint {
  const nothing: Footprint = {
    pods: 0,
    requests: { memory: 0, cpu: 0 },
    limits: { memory: 0, cpu: 0 },
  };
  return manifests.reduce((sum, manifest) => {
    const { max } = scaleOf(manifest);
    const processing = 2 * max + Math.ceil(max * SURGE);
    return added(
      added(sum, processing, podResources(manifest, 'processing')),
      2,
      podResources(manifest, 'preview'),
    );
  }, nothing);
}

function added(
  sum: Footprint,
  pods: number,
  { requests, limits }: { readonly requests: Amount; readonly limits: Amount },
): Footprint {
  const plus = (one: Amount, other: Amount): Amount => ({
    memory: one.memory + pods * other.memory,
    cpu: one.cpu + pods * other.cpu,
  });
  return { pods: sum.pods + pods, requests: plus(sum.requests, requests), limits: plus(sum.limits, limits) };
}

const LEVEL = 'restricted';
/** The policy's version is that of the API server: a fixed version would miss what later ones forbid. */
const VERSION = 'latest';

/**
 * The objects of a client that belong to none of its sites, pure, without their ownership marks: its namespace first.
 * In a namespace that others have made, there are none: the sites' own policies isolate all of our pods there.
 */
export function clientObjects(
  client: string,
  settings: ClusterSettings,
  { pods, requests, limits }: Footprint,
): readonly KubernetesObject[] {
  if (settings.namespace !== null) return [];
  const namespace = namespaceOf(client, settings);
  const labels = clientLabels(client, settings);
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: namespace,
        labels: {
          ...labels,
          ...Object.fromEntries(
            ['enforce', 'audit', 'warn'].flatMap((mode) => [
              [`pod-security.kubernetes.io/${mode}`, LEVEL],
              [`pod-security.kubernetes.io/${mode}-version`, VERSION],
            ]),
          ),
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'tagyard', namespace, labels },
      spec: {
        hard: {
          pods: String(pods),
          'requests.cpu': cpuQuantity(requests.cpu),
          'requests.memory': memoryQuantity(requests.memory),
          'limits.cpu': cpuQuantity(limits.cpu),
          'limits.memory': memoryQuantity(limits.memory),
          // Nothing of a site needs these three.
          'services.loadbalancers': '0',
          'services.nodeports': '0',
          persistentvolumeclaims: '0',
        },
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'tagyard-deny', namespace, labels },
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
    },
  ];
}
