/** The most processing containers of a site. */
export const MOST_REPLICAS = 16;

/** How many processing containers a site has. In a cluster the autoscaler decides, from `min` to `max`. */
export interface ReplicaRange {
  readonly min: number;
  readonly max: number;
}

/** As a manifest gives them. */
type Replicas = number | ReplicaRange;

/** Fewer than this in a cluster is an outage whenever a node is lost. */
const REDUNDANT = 2;

/** On a host with Docker nothing scales: it runs the minimum. */
export function replicasOnHost(replicas: Replicas): number {
  return typeof replicas === 'number' ? replicas : replicas.min;
}

/**
 * In a cluster a number is raised to at least 2: the default is 1, which suffices only for a single host. `{ min: 1, … }` does
 * ask for a single replica.
 */
export function replicasInCluster(replicas: Replicas): ReplicaRange {
  if (typeof replicas !== 'number') return replicas;
  const number = Math.max(REDUNDANT, replicas);
  return { min: number, max: number };
}

/** The most that there may be, wherever the site runs. */
export function mostReplicas(replicas: Replicas): number {
  return replicasInCluster(replicas).max;
}
