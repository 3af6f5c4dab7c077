import type { Applier, Change, Conflict } from '../../../gitops/appliers/contract.ts';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import { objectsApplier } from '../../../gitops/kubernetes/applier/objects-applier.ts';
import { workloadsApplier } from '../../../gitops/kubernetes/applier/workloads-applier.ts';
import { executeSite } from '../../../gitops/loop/execute.ts';
import { DesiredResources } from '../../../gitops/pass/desired-resources.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';

interface RunResult {
  readonly changes: readonly Change[];
  readonly conflicts: readonly Conflict[];
  readonly errors: readonly Error[];
}

/** Makes passes over all sites of a cluster, as the loop does. */
export class SiteRuns {
  readonly appliers: readonly Applier[];
  /** What the changes reported that they were waiting for, in order. */
  readonly progress: string[] = [];
  readonly #signal = new AbortController().signal;
  readonly #desired = new DesiredResources();

  constructor(sites: SitesCluster) {
    this.appliers = [objectsApplier(sites), workloadsApplier(sites)];
  }

  /** What must change so that exactly these sites run. */
  async plan(...manifests: LoadedManifest[]): Promise<Omit<RunResult, 'errors'>> {
    const plans = [];
    for (const applier of this.appliers) {
      const desired = manifests.flatMap((manifest) => this.#desired.of(applier, manifest));
      plans.push(applier.plan(desired, await applier.observe(desired, this.#signal)));
    }
    return {
      changes: plans.flatMap(({ changes }) => changes),
      conflicts: plans.flatMap(({ conflicts }) => conflicts),
    };
  }

  /** Makes exactly these sites run; each site by one run. */
  async run(...manifests: LoadedManifest[]): Promise<RunResult> {
    return await this.runUntil(this.#signal, manifests);
  }

  /** Like `run`; aborting `superseded` ends the runs as a newer revision that changes these sites would. */
  async runUntil(superseded: AbortSignal, manifests: readonly LoadedManifest[]): Promise<RunResult> {
    const plan = await this.plan(...manifests);
    const outcomes = await Promise.all(
      [...Map.groupBy(plan.changes, ({ site }) => site)].map(([site, changes]) =>
        executeSite(
          {
            changes,
            unobserved: new Map(),
            removal: manifests.every((manifest) => manifest.site !== site),
            dnsRemovedAt: null,
            superseded,
          },
          {
            appliers: new Map(this.appliers.map((applier) => [applier.target, applier])),
            drainSeconds: 0,
            onDnsRemoved() {},
            onStep() {},
            onProgress: (_, message) => void this.progress.push(message),
          },
          this.#signal,
        ),
      ),
    );
    return { ...plan, errors: outcomes.flatMap(({ failures }) => failures.map(({ error }) => error)) };
  }
}
