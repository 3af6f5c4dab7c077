import type { Clock } from '../../base/clock.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { Applier } from '../appliers/contract.ts';
import type { Certificates } from '../certificates/contract.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import { DesiredResources } from '../pass/desired-resources.ts';
import type { DriftModes } from '../pass/drift.ts';
import type { Guards, Policy } from '../pass/guards.ts';
import type { Inventory } from '../pass/inventory.ts';
import { type PassPlan, planPass } from '../pass/pass.ts';
import { findRemovals } from '../pass/removals.ts';
import type { RepairLoops } from './retries.ts';

export interface PlannerDeps {
  readonly repo: SitesRepo;
  readonly appliers: readonly Applier[];
  /** Default: `sync`. */
  readonly policy?: Policy | undefined;
  /** The drift mode of each target; default: `enforce`. */
  readonly drift?: DriftModes | undefined;
  readonly certificates?: Pick<Certificates, 'uncertified'> | undefined;
  /** Why this host is frozen; `null`: it isn't. */
  readonly frozen?: (() => Promise<string | null>) | undefined;
  readonly inventory: Inventory;
  readonly repairLoops: RepairLoops;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What the reconciler knows and the planner doesn't. */
export type PassFacts = Pick<Guards, 'historyRewritten' | 'stateLost' | 'approved'> & {
  readonly observeTimeoutMs?: number | undefined;
  /** The revision isn't to be applied: the plan must not affect later plans. */
  readonly isPreview?: boolean;
};

/** Plans passes by the settings of this host. Changes nothing. */
export class Planner {
  readonly #deps: PlannerDeps;
  readonly #cache = new DesiredResources();

  constructor(deps: PlannerDeps) {
    this.#deps = deps;
  }

  /** `scope`: the sites to cover; `null`: all. */
  async plan(
    desired: DesiredState,
    scope: ReadonlySet<string> | null,
    { observeTimeoutMs, isPreview = false, ...facts }: PassFacts,
  ): Promise<PassPlan> {
    const { appliers, policy = 'sync', drift = {}, frozen, repo, certificates } = this.#deps;
    const { inventory, repairLoops, clock, signal } = this.#deps;
    return await planPass(
      {
        desired,
        scope,
        appliers: isPreview ? appliers.map((applier) => applier.preview?.() ?? applier) : appliers,
        cache: this.#cache,
        inventory,
        guards: { ...facts, policy, frozen: (await frozen?.()) ?? null },
        drift: {
          modes: drift,
          isDrift: (change) => inventory.wasApplied(change),
          isRepairLoop: (change) => repairLoops.isRepairLoop(change),
        },
        removals: (sites) => findRemovals(sites, desired, repo),
        uncertified: () => certificates?.uncertified() ?? new Map(),
        observeTimeoutMs,
        clock,
      },
      signal,
    );
  }
}
