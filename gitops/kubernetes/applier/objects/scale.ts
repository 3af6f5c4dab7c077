import { type ReplicaRange, replicasInCluster } from '../../../../sites/manifest/resources/replicas.ts';
import type { Manifest } from '../../../../sites/manifest/schema.ts';
import type { ClusterSettings } from './settings.ts';

/** The least and the most processing pods of a site: between them, the autoscaler decides. */
export function scaleOf({ resources }: Pick<Manifest, 'resources'>): ReplicaRange {
  return replicasInCluster(resources.processing.replicas);
}

/** Whether the preview server runs only while it is used: gateways start and stop it. Without gateways, it runs always. */
export function isOnDemand(
  { resources }: Pick<Manifest, 'resources'>,
  { gatewayNamespace }: Pick<ClusterSettings, 'gatewayNamespace'>,
): boolean {
  return resources.preview.onDemand && gatewayNamespace !== null;
}

/**
 * The replicas of a site's processing Deployment when it is created. Later the autoscaler sets them, so the applied
 * Deployment doesn't state them: otherwise, an apply would take pods away from a site under load.
 */
export function initialReplicas(manifest: Pick<Manifest, 'resources'>): number {
  return scaleOf(manifest).min;
}
