import type { ContainerRole, LoadedManifest } from '../../../../sites/manifest/containers.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { objectName, podSelector, siteMetadata } from './names.ts';
import { podTemplate } from './pod.ts';
import { isOnDemand } from './scale.ts';
import type { ClusterSettings } from './settings.ts';

/** How many pods a rollout may add to the processing pods, as a part of their number, rounded up. */
export const SURGE = 0.25;
/** A new pod counts only after it was ready for this long. */
const STEADY_SECONDS = 5;
/** A rollout without progress for this long has failed. */
const PROGRESS_SECONDS = 600;

/**
 * The Deployments of a site: processing without `replicas` (see `initialReplicas`), and exactly one preview pod. The
 * preview Deployment on demand has no `replicas` either: gateways set them.
 */
export function deployments(manifest: LoadedManifest, settings: ClusterSettings): KubernetesObject[] {
  const deployment = (role: ContainerRole, own: object): KubernetesObject => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: siteMetadata(objectName(manifest.site, role), manifest, settings),
    spec: {
      ...own,
      minReadySeconds: STEADY_SECONDS,
      progressDeadlineSeconds: PROGRESS_SECONDS,
      revisionHistoryLimit: 2,
      selector: { matchLabels: podSelector(manifest.site, role, settings) },
      template: podTemplate(manifest, role, settings),
    },
  });
  return [
    deployment('processing', { strategy: rolling(`${SURGE * 100}%`, 0) }),
    // Its sessions are in its memory, so there are never two. Not `Recreate`: that waits for the pod of a lost node.
    deployment('preview', {
      ...(isOnDemand(manifest, settings) ? {} : { replicas: 1 }),
      strategy: rolling(0, 1),
    }),
  ];
}

function rolling(maxSurge: string | number, maxUnavailable: number) {
  return { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } };
}
