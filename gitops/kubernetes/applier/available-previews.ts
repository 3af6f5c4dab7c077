import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { deploymentState } from './state/deployment.ts';

/**
 * How many of a site's preview servers are available. One on demand that is stopped counts, too, unless its last start
 * has failed. Throws if the cluster can't be read.
 */
export async function availablePreviews(
  { copies, render, failedPreviews }: Pick<Cluster, 'copies' | 'render' | 'failedPreviews'>,
  manifest: LoadedManifest,
  signal: AbortSignal,
): Promise<number> {
  await copies.ready(signal);
  const previews = render(manifest).filter(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-preview'),
  );
  const found = previews.map(({ kind, metadata: { name, namespace = null } }) =>
    copies.find({ kind, namespace, name }),
  );
  // A preview server that always runs is applied with `replicas`, one on demand without.
  const isAlwaysOn = previews.every(({ spec }) => Object.hasOwn(Object(spec), 'replicas'));
  const hasFailed = (failedPreviews?.messageOf(manifest.site) ?? null) !== null;
  const serving = (one: KubernetesObject) => {
    const { replicas, available } = deploymentState(one);
    return replicas === 0 && !isAlwaysOn && !hasFailed ? 1 : available;
  };
  return found.reduce((sum, one) => sum + (one === undefined ? 0 : serving(one)), 0);
}
