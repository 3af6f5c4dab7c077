import type { PassPlan } from '../pass/pass.ts';
import type { PlanReport } from '../report/report.ts';

/** The plan as `POST /plan` answers it. */
export function planReport(plan: PassPlan): PlanReport {
  const left = [...plan.bySite.values()].flatMap((site) => site.unrepaired);
  return {
    revision: plan.desired.revision,
    checksum: plan.checksum,
    changes: plan.changes.map(({ site, target, key, op, summary }) => ({ site, target, key, op, summary })),
    blocked: [
      ...plan.blocked.map(({ reason, detail }) => ({ reason, detail })),
      ...plan.conflicts.map(({ detail }) => ({ reason: 'conflict', detail })),
      ...left.map(({ change, why }) => ({
        reason: why === 'warn' ? 'drift' : 'repair_loop',
        detail: `${change.site}: ${change.target} ${change.key} differs and is left alone`,
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
