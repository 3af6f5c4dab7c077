import { counted } from '../../base/text.ts';
import type { Change } from '../appliers/contract.ts';
import { APPROVABLE } from '../pass/guards.ts';
import type { PassPlan } from '../pass/pass.ts';
import type { PlanReport } from '../report/report.ts';

/** The plan in the form of the answer to `POST /plan`. */
export function planReport(plan: PassPlan): PlanReport {
  const left = [...plan.bySite.values()].flatMap((site) => site.unrepaired);
  return {
    revision: plan.desired.revision,
    checksum: plan.checksum,
    changes: plan.changes.map((change) => reportChange(plan, change)),
    blocked: [
      ...plan.blocked.map(({ reason, detail }) => ({ reason, detail })),
      ...suspensions(plan),
      ...plan.conflicts.map(({ detail }) => ({ reason: 'conflict', detail })),
      ...left.map(({ change, why }) => ({
        reason: why === 'warn' ? 'drift' : 'repair_loop',
        detail: `${change.site}: ${change.target} ${change.key} is ${foundOf(change) ?? 'missing'} and is not repaired; it was applied as ${change.summary}`,
      })),
      ...[...plan.unobserved].map(([target, error]) => ({
        reason: 'observe_failed',
        detail: `${target}: ${error.message}`,
      })),
      ...[...plan.desired.sites.values()].flatMap(({ stalled }) =>
        stalled === null ? [] : [{ reason: stalled.reason, detail: stalled.message }],
      ),
    ],
  };
}

function reportChange(plan: PassPlan, change: Change): PlanReport['changes'][number] {
  const { site, target, key, op, summary } = change;
  const held = [...(plan.held.get(change) ?? [])];
  return { site, target, key, op, summary, drift: plan.drifted.has(change), found: foundOf(change), held };
}

function foundOf({ observed }: Change): string | null {
  if (observed === undefined) return null;
  return observed.found ?? (observed.hash === null ? 'changed or broken' : 'an earlier state');
}

function suspensions({ bySite, desired }: PassPlan): PlanReport['blocked'] {
  return [...bySite].flatMap(([site, { changes }]) =>
    changes.length > 0 && desired.sites.get(site)?.manifest?.suspend
      ? [
          {
            reason: 'suspended',
            detail: `${site} is suspended: ${counted(changes.length, 'change waits', 'changes wait')}`,
          },
        ]
      : [],
  );
}

/** What still holds the guarded changes of a plan once they are approved. */
export function holdsAfterApproval(plan: PassPlan): PlanReport['blocked'] {
  const reasons = new Set(
    plan.guarded.flatMap((change) =>
      (plan.held.get(change) ?? []).filter((reason) => !APPROVABLE.has(reason)),
    ),
  );
  const blocked = [...plan.blocked, ...suspensions(plan)];
  return blocked.flatMap(({ reason, detail }) =>
    [...reasons].some((one) => one === reason) ? [{ reason, detail }] : [],
  );
}
