import { APPROVABLE } from '../pass/guards.ts';
import { NOTHING, type PassPlan } from '../pass/pass.ts';
import type { Reason, ResourceStatus, SiteStatus } from '../report/report.ts';
import type { SiteOutcome } from './execute.ts';

/** What is known of a site before this pass looked at it. */
export function unknownSite(site: string, host: string): SiteStatus {
  return {
    site,
    host,
    desired: null,
    applied: null,
    attempted: null,
    ready: false,
    reason: 'Progressing',
    message: '',
    health: 'unknown',
    resources: [],
  };
}

export interface Obstacle {
  readonly reason: Reason;
  readonly message: string;
  /** It goes away by itself; every other one needs somebody. */
  readonly passing?: true;
}

/** What stands in a site's way according to the plan alone; `null`: nothing does. */
export function obstacle(plan: PassPlan, site: string): Obstacle | null {
  const entry = plan.desired.entries.get(site);
  if (entry?.stalled) return entry.stalled;
  const { conflicts, blocks, changes, left } = plan.bySite.get(site) ?? NOTHING;
  const [conflict] = conflicts;
  if (conflict !== undefined) return { reason: 'Conflict', message: conflict.detail };
  const goes = entry === undefined || entry.manifest?.state === 'absent';
  // What an upsert_only host leaves behind of a live site doesn't keep the site from being as it should be.
  const block = blocks.find(({ reason }) => goes || reason !== 'upsert_only');
  if (block?.reason === 'frozen') return { reason: 'Frozen', message: block.detail };
  if (block !== undefined) {
    const how = APPROVABLE.has(block.reason) ? `; to let it through: tagyard approve ${plan.checksum}` : '';
    const passing = block.reason === 'state_lost' ? ({ passing: true } as const) : {};
    return { reason: 'Blocked', message: `${block.detail}${how}`, ...passing };
  }
  if (entry?.manifest?.suspend && changes.length > 0) {
    const what = changes.map(({ summary }) => summary).join('; ');
    return { reason: 'Suspended', message: `${changes.length} changes wait: ${what}` };
  }
  const [drifted] = left;
  if (drifted !== undefined) {
    const keys = left.map(({ change }) => `${change.target} ${change.key}`).join(', ');
    return drifted.why === 'repair_loop'
      ? { reason: 'RepairLoop', message: `repaired three times in ten minutes, now left alone: ${keys}` }
      : { reason: 'Drifted', message: `changed from outside and left so: ${keys}` };
  }
  const [unread] = plan.unobserved;
  if (unread === undefined) return uncertified(plan, site);
  return { reason: 'ObserveFailed', message: `${unread[0]}: ${unread[1].message}`, passing: true };
}

/** Certificates come in their own time, after everything else is applied: until then the site isn't what is asked. */
export function uncertified(plan: PassPlan, site: string): Obstacle | null {
  const message = plan.uncertified.get(site);
  return message === undefined ? null : { reason: 'CertificatePending', message, passing: true };
}

/** The condition after a run: what failed first, then the plan's obstacle. */
export function afterRun(
  plan: PassPlan,
  site: string,
  outcome: SiteOutcome | null,
): Pick<SiteStatus, 'ready' | 'reason' | 'message'> {
  const failed = outcome?.failures ?? [];
  if (failed.length > 0) {
    const message = failed
      .map(({ change, error }) => `${change.target} ${change.key}: ${error.message}`)
      .join('; ');
    return { ready: false, reason: outcome?.terminal ? 'Failed' : 'Retrying', message };
  }
  const stands = obstacle(plan, site);
  if (stands !== null) return { ready: false, reason: stands.reason, message: stands.message };
  const entry = plan.desired.entries.get(site);
  if (entry === undefined || entry.manifest?.state === 'absent')
    return { ready: true, reason: 'Removed', message: '' };
  return { ready: true, reason: 'Ready', message: '' };
}

/** One line a resource, from what is wanted and what failed; nothing wanted and nothing failed is nothing to show. */
export function resourceStatuses(
  plan: PassPlan,
  site: string,
  outcome: SiteOutcome | null,
  nextRetry: string | null,
): ResourceStatus[] {
  const { changes, conflicts, left } = plan.bySite.get(site) ?? NOTHING;
  const done = new Set(outcome?.done.map(idOf));
  const pending = new Set(changes.map(idOf).filter((id) => !done.has(id)));
  const drifted = new Set(left.map(({ change }) => idOf(change)));
  const contested = new Set(conflicts.map(idOf));
  const failures = new Map(outcome?.failures.map(({ change, error }) => [idOf(change), error.message]));
  return plan.resources(site).map((resource) => {
    const { target, key, hash } = resource;
    const id = idOf(resource);
    const lastError = failures.get(id);
    const state =
      lastError !== undefined
        ? 'failed'
        : contested.has(id)
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
      // Of a drifted one too: it was applied, and that is what its drift is measured by.
      hash: state === 'applied' || state === 'drifted' ? hash : null,
      ...(lastError === undefined ? {} : { lastError, ...(nextRetry === null ? {} : { nextRetry }) }),
    };
  });
}

function idOf({ target, key }: { target: string; key: string }): string {
  return `${target} ${key}`;
}
