import type { Change, Target } from '../appliers/contract.ts';
import type { PassPlan } from '../pass/pass.ts';
import type { SiteStatus } from '../report/report.ts';
import {
  afterRun,
  type Obstacle,
  obstacle,
  resourceStatuses,
  uncertified,
  unknownSite,
} from './conditions.ts';
import type { SiteOutcome } from './execute.ts';

/** What a condition has become, for the operations and the log. */
export interface Settled {
  readonly status: SiteStatus;
  readonly obstacle: Obstacle | null;
  /** Reason or message are others than before. */
  readonly changed: boolean;
}

/** The one place that writes a site's condition (reconciler rule 14). */
export class SiteStatuses {
  readonly #host: string;
  readonly #statuses: Map<string, SiteStatus>;
  /** Sites whose wish is applied in full, with the entry that says so. */
  readonly #current = new Map<string, unknown>();
  #revision: string | null = null;

  constructor(host: string, known: readonly SiteStatus[]) {
    this.#host = host;
    this.#statuses = new Map(known.map((status) => [status.site, status]));
  }

  /**
   * A site that nothing new is asked of isn't looked at for a new revision, yet it stands at that revision: what was
   * applied in full of the one before is shown as applied of this one. `changed`: of those something new is asked.
   */
  planned(revision: string, changed: Iterable<string>): void {
    this.#revision = revision;
    for (const site of changed) this.outdated(site);
  }

  /** Something new is asked of the site. */
  outdated(site: string): void {
    this.#current.delete(site);
  }

  all(): SiteStatus[] {
    return [...this.#statuses.keys()].sort().map((site) => this.#shown(this.#of(site)));
  }

  get(site: string): SiteStatus | null {
    const status = this.#statuses.get(site);
    return status === undefined ? null : this.#shown(status);
  }

  sites(): Iterable<string> {
    return this.#statuses.keys();
  }

  /** Keys that the sites' manifests wanted when they were last looked at. */
  keys(target: Target, sites: ReadonlySet<string>): string[] {
    return [...sites].flatMap((site) =>
      this.#of(site).resources.flatMap((one) => (one.target === target ? [one.key] : [])),
    );
  }

  /** The very content of this change was applied before, as far as is remembered. */
  wasApplied({ site, target, key, desired }: Change): boolean {
    const resources = this.#statuses.get(site)?.resources ?? [];
    const before = resources.find((one) => one.target === target && one.key === key);
    return before?.hash != null && before.hash === desired?.hash;
  }

  /** Nothing has happened to the site since it was found in order, according to this plan. */
  isConverged(plan: PassPlan, site: string): boolean {
    const entry = plan.desired.entries.get(site);
    return (
      entry !== undefined &&
      this.#current.get(site) === entry &&
      !plan.bySite.has(site) &&
      plan.unobserved.size === 0 &&
      !plan.uncertified.has(site)
    );
  }

  started(plan: PassPlan, site: string, changes: number): void {
    const entry = plan.desired.entries.get(site);
    const removal = entry === undefined || entry.manifest?.state === 'absent';
    this.#current.delete(site);
    this.#statuses.set(site, {
      ...this.#of(site),
      ...(removal ? {} : { withdrawnAt: undefined }),
      desired: plan.desired.revision,
      attempted: plan.desired.revision,
      ready: false,
      reason: removal ? 'Removing' : 'Progressing',
      message: `${changes} changes`,
    });
  }

  /** The DNS records of a site that goes are gone since then. */
  withdrawn(site: string, at: Date): void {
    this.#statuses.set(site, { ...this.#of(site), withdrawnAt: at.toISOString() });
  }

  withdrawnAt(site: string): Date | null {
    const at = this.#of(site).withdrawnAt;
    return at === undefined ? null : new Date(at);
  }

  /** `counts`: what is asked is applied, but for what is forgiven. */
  settle(
    plan: PassPlan,
    site: string,
    outcome: SiteOutcome | null,
    { counts, nextRetry }: { counts: boolean; nextRetry: string | null },
  ): Settled {
    const before = this.#of(site);
    const condition = afterRun(plan, site, outcome);
    const isConverged = outcome === null ? obstacle(plan, site) : uncertified(plan, site);
    const applied = counts && isConverged === null;
    const { revision } = plan.desired;
    const status: SiteStatus = {
      ...before,
      ...condition,
      desired: revision,
      attempted: outcome === null ? before.attempted : revision,
      applied: applied ? revision : before.applied,
      health: condition.ready ? 'healthy' : before.applied === null ? 'unknown' : 'degraded',
      resources: resourceStatuses(plan, site, outcome, nextRetry),
      // Of a life that is over: one that comes after it, and goes too, must not take its drain for its own.
      ...(condition.reason === 'Removed' ? { withdrawnAt: undefined } : {}),
    };
    this.#statuses.set(site, status);
    const entry = plan.desired.entries.get(site);
    if (applied && condition.ready && entry !== undefined) this.#current.set(site, entry);
    else this.#current.delete(site);
    const changed = condition.reason !== before.reason || condition.message !== before.message;
    return { status, obstacle: isConverged, changed };
  }

  /** Of a removed site whose file is gone too there is nothing left to say. */
  forget(site: string): void {
    this.#statuses.delete(site);
    this.#current.delete(site);
  }

  #of(site: string): SiteStatus {
    return this.#statuses.get(site) ?? unknownSite(site, this.#host);
  }

  #shown(status: SiteStatus): SiteStatus {
    if (this.#revision === null || !this.#current.has(status.site)) return status;
    return { ...status, desired: this.#revision, applied: this.#revision };
  }
}
