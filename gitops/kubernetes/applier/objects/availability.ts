import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { objectName, podSelector, siteMetadata } from './names.ts';
import { scaleOf } from './scale.ts';
import type { ClusterSettings } from './settings.ts';

/** Pods are added when they use more than this percentage of the CPU that they request. */
const UTILIZATION = 70;

/** How many processing pods a site has, and how many of them the drain of a node may take at once. */
export function availability(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject[] {
  const name = objectName(manifest.site, 'processing');
  const metadata = siteMetadata(name, manifest, settings);
  const { min, max } = scaleOf(manifest);
  return [
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: {
        maxUnavailable: 1,
        // A pod that isn't ready must not block the drain of its node.
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
        selector: { matchLabels: podSelector(manifest.site, 'processing', settings) },
      },
    },
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata,
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
        // Even if both limits are equal, the autoscaler sets the number, so the desired Deployment states no
        // `replicas`.
        minReplicas: min,
        maxReplicas: max,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: UTILIZATION } },
          },
        ],
      },
    },
  ];
}
