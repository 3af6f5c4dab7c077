import { counted } from '../../base/text.ts';
import { identifiedPlaces } from '../../sites/manifest/consent.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { DesiredSite } from '../desired/desired-state.ts';
import type { Inventory } from '../pass/inventory.ts';
import type { PassPlan } from '../pass/pass.ts';
import { meaningOf, type Reason, type ResourceStatus, type SiteStatus, toldOf } from '../report/report.ts';
import {
  conditionAfterRun,
  initialStatus,
  obstacle,
  resourceStatuses,
  type SiteObstacle,
} from './conditions.ts';
import type { SiteOutcome } from './execute.ts';

/** A site's new status, with what the operations and the log need of it. */
interface SettledStatus {
  readonly status: SiteStatus;
  readonly obstacle: SiteObstacle | null;
  /** The desired state is applied in full, and the site is ready. */
  readonly isConverged: boolean;
  /** Reason or message differ from before. */
  readonly changed: boolean;
}

interface SiteStatusesDeps {
  readonly inventory: Pick<Inventory, 'convergedTo'>;
  /** See `Applier`. */
  readonly faultOf: (site: string) => string | null;
  /** See `Applier`. */
  readonly serving: (site: string) => readonly Pick<ResourceStatus, 'target' | 'key'>[];
}

/** Reasons that stay while a container doesn't serve: they say why a change, or the repair itself, isn't made. */
const KEPT: readonly Reason[] = ['Failed', 'Retrying', 'QuotaReached', 'ObserveFailed'];

/** Reasons beside which a container that doesn't serve, or can't be started, is the only trouble. */
const SERVERS_FAIL: readonly Reason[] = ['Failed', 'Retrying'];
const ELSE_WELL: readonly Reason[] = ['Ready', 'Progressing', ...SERVERS_FAIL];

/** Reasons for which nothing more of a site is removed. */
const HOLDS: readonly Reason[] = ['Blocked', 'Frozen'];

/** The only writer of site conditions (docs/reconciler.md, rule 14). */
export class SiteStatuses {
  readonly #host: string;
  readonly #statuses: Map<string, SiteStatus>;
  readonly #deps: SiteStatusesDeps;
  #revision: string | null = null;

  constructor(host: string, known: readonly SiteStatus[], deps: SiteStatusesDeps) {
    this.#host = host;
    this.#statuses = new Map(known.map((status) => [status.site, status]));
    this.#deps = deps;
  }

  /**
   * A new revision was read. The pass doesn't cover sites that the revision doesn't change, so the converged ones are
   * shown as converged at this revision.
   */
  setRevision(revision: string): void {
    this.#revision = revision;
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

  /** A run starts; `changes`: how many it applies. */
  started(plan: PassPlan, site: string, changes: number): void {
    const desired = plan.desired.sites.get(site);
    const isRemoved = isRemoval(desired);
    this.#statuses.set(site, {
      ...this.#of(site),
      ...(isRemoved ? {} : { withdrawnAt: undefined }),
      desired: plan.desired.revision,
      attempted: plan.desired.revision,
      refusal: refusedBy(desired),
      heldRemoval: undefined,
      ready: false,
      reason: isRemoved ? 'Removing' : 'Progressing',
      message: counted(changes, 'change'),
    });
  }

  /** What the changes of the active run wait for; empty texts: for nothing unusual. */
  progress(site: string, changes: number, waits: readonly string[]): void {
    const message = [counted(changes, 'change'), ...waits.filter((text) => text !== '')].join('; ');
    this.#statuses.set(site, { ...this.#of(site), message });
  }

  /** The last DNS record of a site that is being removed was deleted. */
  dnsRemoved(site: string, at: Date): void {
    this.#statuses.set(site, { ...this.#of(site), withdrawnAt: at.toISOString() });
  }

  dnsRemovedAt(site: string): Date | null {
    const at = this.#of(site).withdrawnAt;
    return at === undefined ? null : new Date(at);
  }

  /** `isApplied`: every change that the plan allows is applied, apart from the optional ones. */
  settle(
    plan: PassPlan,
    site: string,
    outcome: SiteOutcome | null,
    { isApplied, nextRetry }: { isApplied: boolean; nextRetry: string | null },
  ): SettledStatus {
    const before = this.#of(site);
    const condition = conditionAfterRun(plan, site, outcome);
    const found = obstacle(plan, site);
    const applied = isApplied && found === null;
    const { revision } = plan.desired;
    const desired = plan.desired.sites.get(site);
    const manifest = desired?.manifest;
    const isHeld =
      isRemoval(desired) &&
      HOLDS.includes(condition.reason) &&
      before.applied !== null &&
      before.withdrawnAt === undefined;
    const status: SiteStatus = {
      ...before,
      ...condition,
      desired: revision,
      attempted: outcome === null ? before.attempted : revision,
      applied: applied ? revision : before.applied,
      suspended: manifest === null ? before.suspended : manifest?.suspend === true || undefined,
      servingOff: manifest === null ? before.servingOff : manifest?.serving === false || undefined,
      refusal: refusedBy(desired),
      heldRemoval: isHeld ? toldOf(condition.reason, condition.message) : undefined,
      identifies: manifest === null ? before.identifies : identifiedBy(manifest),
      resources: resourceStatuses(plan, site, outcome, { nextRetry, before: before.resources }),
      // A later site of this name must not take over the drain of the one that was removed.
      ...(condition.reason === 'Removed' ? { withdrawnAt: undefined } : {}),
    };
    this.#statuses.set(site, status);
    const changed = condition.reason !== before.reason || condition.message !== before.message;
    return { status, obstacle: found, isConverged: applied && condition.ready, changed };
  }

  /** The site was removed, and its file is gone. */
  forget(site: string): void {
    this.#statuses.delete(site);
  }

  #of(site: string): SiteStatus {
    return this.#statuses.get(site) ?? initialStatus(site, this.#host);
  }

  #shown(status: SiteStatus): SiteStatus {
    const fault = this.#deps.faultOf(status.site);
    const shown = {
      ...(fault === null ? status : unhealthy(status, fault)),
      ...(this.#isPartial(status, fault) ? { partial: true as const } : {}),
    };
    if (this.#revision === null || this.#deps.inventory.convergedTo(status.site) === null) return shown;
    return { ...shown, desired: this.#revision, applied: this.#revision };
  }

  /** Only servers fail, and another one that git asks for serves. */
  #isPartial({ site, reason, resources }: SiteStatus, fault: string | null): boolean {
    const isRefused = meaningOf(reason) === 'refused';
    if (fault === null ? !SERVERS_FAIL.includes(reason) : !ELSE_WELL.includes(reason) && !isRefused)
      return false;
    const serving = this.#deps.serving(site);
    const isOneOf = (one: ResourceStatus) =>
      serving.some(({ target, key }) => target === one.target && key === one.key);
    const unapplied = resources.filter(({ state }) => state !== 'applied');
    return (
      resources.some((one) => one.state === 'applied' && isOneOf(one)) &&
      unapplied.every(({ target }) => target === serving[0]?.target)
    );
  }
}

/** The status while a container of the site doesn't serve. The repair is a run like others, and doesn't hide that. */
function unhealthy(status: SiteStatus, fault: string): SiteStatus {
  const { reason, message } = status;
  if (meaningOf(reason) === 'gone') return status;
  if (KEPT.includes(reason)) return { ...status, message: `${message}; ${fault}` };
  const besides = reason === 'Ready' || reason === 'Progressing' ? '' : `; ${reason}: ${message}`;
  return { ...status, ready: false, reason: 'Unhealthy', message: `${fault}${besides}` };
}

function isRemoval(desired: DesiredSite | undefined): boolean {
  return desired === undefined || desired.manifest?.state === 'absent';
}

function refusedBy(desired: DesiredSite | undefined): string | undefined {
  const { stalled = null } = desired ?? {};
  return stalled === null ? undefined : toldOf(stalled.reason, stalled.message);
}

function identifiedBy(manifest: LoadedManifest | undefined): string | undefined {
  if (manifest?.state !== 'present') return undefined;
  return identifiedPlaces(manifest) ?? undefined;
}
