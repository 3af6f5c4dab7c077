import type { SourceProblem } from '../loop/source.ts';
import type { Reason, SiteStatus } from '../report/report.ts';

/**
 * The reason to show: `SourceUnavailable` in place of `Ready` while newer revisions are unknown. Other reasons say more
 * than that.
 */
export function shownReason({ reason }: SiteStatus, problem: SourceProblem | null): Reason {
  return reason === 'Ready' && problem !== null ? 'SourceUnavailable' : reason;
}
