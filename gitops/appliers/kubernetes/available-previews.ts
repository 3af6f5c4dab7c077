import type { KubernetesObject } from '../../clients/kubernetes/kinds.ts';
import type { LoadedManifest } from '../../manifest/containers.ts';
import type { Cluster } from './cluster.ts';
import { deploymentState } from './state/deployment.ts';

/**
 * How many preview servers of a site serve, or will on demand, as far as their last start has shown. Throws where the
 * cluster can't be read.
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
  // One that runs always is applied with a number of pods.
  const isStarted = previews.every(({ spec }) => Object.hasOwn(Object(spec), 'replicas'));
  const hasFailed = (failedPreviews?.messageOf(manifest.site) ?? null) !== null;
  const serving = (one: KubernetesObject) => {
    const { replicas, available } = deploymentState(one);
    return replicas === 0 && !isStarted && !hasFailed ? 1 : available;
  };
  return found.reduce((sum, one) => sum + (one === undefined ? 0 : serving(one)), 0);
}
