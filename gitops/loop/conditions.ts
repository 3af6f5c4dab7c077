import { QuotaReachedError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import type { Change } from '../appliers/contract.ts';
import { APPROVABLE } from '../pass/guards.ts';
import { EMPTY_SITE_PLAN, type PassPlan } from '../pass/pass.ts';
import { HOST_FAULTS, type Reason, type ResourceStatus, type SiteStatus } from '../report/report.ts';
import type { SiteOutcome } from './execute.ts';

/** The status of a site that no pass has covered yet. */
export function initialStatus(site: string, host: string): SiteStatus {
  return {
    site,
    host,
    desired: null,
    applied: null,
    attempted: null,
    ready: false,
    reason: 'Progressing',
    message: '',
    resources: [],
  };
}

/** Why a site can't become ready. */
export interface SiteObstacle {
  readonly reason: Reason;
  readonly message: string;
  /** The obstacle ends by itself; every other obstacle needs an action. */
  readonly transient?: true;
}

/** The first obstacle that the plan alone shows; `null`: none. */
export function obstacle(plan: PassPlan, site: string): SiteObstacle | null {
  const desired = plan.desired.sites.get(site);
  if (desired?.stalled) return desired.stalled;
  const { conflicts, blocks, changes, unrepaired } = plan.bySite.get(site) ?? EMPTY_SITE_PLAN;
  const conflict = conflicts.find(({ ofName }) => ofName) ?? conflicts[0];
  if (conflict !== undefined) {
    const waiting = changes.filter((change) => plan.held.get(change)?.includes('conflict'));
    const message = `${conflict.detail}${waiting.length === 0 ? '' : howToGetNames(waiting)}`;
    return { reason: 'Conflict', message };
  }
  const isRemoval = desired === undefined || desired.manifest?.state === 'absent';
  // A live site can be ready although upsert_only stops its deletes.
  const block = blocks.find(({ reason }) => isRemoval || reason !== 'upsert_only');
  if (block?.reason === 'frozen') return { reason: 'Frozen', message: block.detail };
  if (block !== undefined) {
    const hint = APPROVABLE.has(block.reason) ? `; to approve: tagyard approve ${plan.checksum}` : '';
    const transient = block.reason === 'state_lost' ? ({ transient: true } as const) : {};
    return { reason: 'Blocked', message: `${block.detail}${hint}`, ...transient };
  }
  if (desired?.manifest?.suspend && changes.length > 0) {
    const summaries = changes.map(({ summary }) => summary).join('; ');
    return {
      reason: 'Suspended',
      message: `${counted(changes.length, 'change is', 'changes are')} pending: ${summaries}`,
    };
  }
  const [first] = unrepaired;
  if (first !== undefined) {
    const keys = unrepaired.map(({ change }) => `${change.target} ${change.key}`).join(', ');
    return first.why === 'repair_loop'
      ? { reason: 'RepairLoop', message: `repaired three times in ten minutes; repairs are paused: ${keys}` }
      : { reason: 'Drifted', message: `changed from outside and not repaired: ${keys}` };
  }
  const [unobserved] = plan.unobserved;
  if (unobserved === undefined) return hostObstacle(plan, site);
  return { reason: 'ObserveFailed', message: `${unobserved[0]}: ${unobserved[1].message}`, transient: true };
}

function howToGetNames(waiting: readonly Change[]): string {
  const summaries = waiting.map(({ summary }) => summary).join('; ');
  return `. Remove it, give the site another hostname, or take it over by adopt: true. Not applied until then: ${summaries}`;
}

/** What keeps a site from being ready after everything is applied: what the host lacks, a missing certificate. */
function hostObstacle(plan: PassPlan, site: string): SiteObstacle | null {
  const shortfall = plan.shortfall(site);
  if (shortfall !== null) return shortfall;
  const message = plan.uncertified.get(site);
  return message === undefined ? null : { reason: 'CertificatePending', message, transient: true };
}

/** True if the manifest caused none of the failures. Without failures: true if the obstacle lies with the host. */
export function isHostFault(
  found: SiteObstacle | null,
  failures: readonly { readonly error: Error }[],
): boolean {
  if (failures.length === 0) return found !== null && HOST_FAULTS.includes(found.reason);
  return failures.every(({ error }) => !('isOfSite' in error && error.isOfSite === true));
}

/** The condition after a run (`null`: there was nothing to run): failures first, then the plan's obstacle. */
export function conditionAfterRun(
  plan: PassPlan,
  site: string,
  outcome: SiteOutcome | null,
): Pick<SiteStatus, 'ready' | 'reason' | 'message'> {
  const failures = outcome?.failures ?? [];
  if (failures.length > 0) {
    const message = failures
      .map(({ change, error }) => `${change.target} ${change.key}: ${error.message}`)
      .join('; ');
    const isFull = failures.some(({ error }) => error instanceof QuotaReachedError);
    const reason = isFull ? 'QuotaReached' : outcome?.terminal ? 'Failed' : 'Retrying';
    return { ready: false, reason, message };
  }
  const found = obstacle(plan, site);
  if (found !== null) return { ready: false, reason: found.reason, message: found.message };
  const desired = plan.desired.sites.get(site);
  if (desired === undefined || desired.manifest?.state === 'absent')
    return { ready: true, reason: 'Removed', message: '' };
  return { ready: true, reason: 'Ready', message: '' };
}

/**
 * The status of each resource that the plan knows of the site. `before`: their last statuses, which say what is known
 * of a target that couldn't be observed.
 */
export function resourceStatuses(
  plan: PassPlan,
  site: string,
  outcome: SiteOutcome | null,
  { nextRetry, before }: { nextRetry: string | null; before: readonly ResourceStatus[] },
): ResourceStatus[] {
  const { changes, conflicts, unrepaired } = plan.bySite.get(site) ?? EMPTY_SITE_PLAN;
  const done = new Set(outcome?.done.map(idOf));
  const open = changes.filter((change) => !done.has(idOf(change)));
  const pending = new Set(open.map(idOf));
  const missing = new Set(open.filter(({ op }) => op === 'create').map(idOf));
  const drifted = new Set(unrepaired.map(({ change }) => idOf(change)));
  const inConflict = new Set(conflicts.map(idOf));
  const failures = new Map(outcome?.failures.map(({ change, error }) => [idOf(change), error.message]));
  const known = new Map(before.map((one) => [idOf(one), one]));
  return plan.resources(site).map((resource) => {
    const { target, key, hash } = resource;
    const id = idOf(resource);
    if (plan.unobserved.has(target)) {
      const last = known.get(id);
      return last?.hash === hash || last?.hash === null
        ? last
        : { target, key, state: 'pending', hash: null };
    }
    const lastError = failures.get(id);
    const state =
      lastError !== undefined
        ? 'failed'
        : inConflict.has(id)
          ? 'conflict'
          : pending.has(id)
            ? 'pending'
            : drifted.has(id)
              ? 'drifted'
              : 'applied';
    return {
      target,
      key,
      state,
      // A drifted resource keeps its hash: it was applied, and drift is a difference from what was applied.
      hash: state === 'applied' || state === 'drifted' ? hash : null,
      ...(missing.has(id) ? { missing: true as const } : {}),
      ...(lastError === undefined ? {} : { lastError, ...(nextRetry === null ? {} : { nextRetry }) }),
    };
  });
}

function idOf({ target, key }: { target: string; key: string }): string {
  return `${target} ${key}`;
}
