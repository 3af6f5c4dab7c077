import type { Manifest } from '../../../manifest/schema.ts';

/** How many processing pods a site has: the autoscaler decides between the two. */
export interface Scale {
  readonly min: number;
  readonly max: number;
}

/** The scale of a site's processing pods. */
export function scaleOf({ resources }: Pick<Manifest, 'resources'>): Scale {
  const { replicas } = resources.processing;
  return { min: replicas, max: replicas };
}

/**
 * The replicas of a site's processing Deployment when it is created. Later the autoscaler sets them, so the applied
 * Deployment doesn't have them: an apply would take pods away from a site under load.
 */
export function initialReplicas(manifest: Pick<Manifest, 'resources'>): number {
  return scaleOf(manifest).min;
}
