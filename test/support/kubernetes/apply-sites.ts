import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import { objectsApplier } from '../../../gitops/kubernetes/applier/objects-applier.ts';
import { workloadsApplier } from '../../../gitops/kubernetes/applier/workloads-applier.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';

/**
 * Applies these manifests with both targets of a cluster, as a full pass does. It removes what no manifest asks for,
 * and the namespaces of clients without a site. Throws the first error.
 */
export async function applySites(sites: SitesCluster, manifests: readonly LoadedManifest[]): Promise<void> {
  const { signal } = new AbortController();
  const workloads = workloadsApplier(sites);
  const objects = objectsApplier(sites);
  const pass = [objects, workloads];
  // Secrets outlive the pods that name them.
  for (const applier of manifests.length === 0 ? pass.toReversed() : pass) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    const { changes, conflicts } = applier.plan(desired, await applier.observe(desired, signal));
    const [conflict] = conflicts;
    if (conflict !== undefined) throw new Error(conflict.detail);
    for (const change of changes) await applier.apply(change, signal);
  }
  // Closing now would abort the removal of namespaces.
  await sites.clients.ended();
  for (const applier of pass) await applier.close?.();
}
