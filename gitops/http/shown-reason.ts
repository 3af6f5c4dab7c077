import type { SourceProblem } from '../loop/source.ts';
import type { Reason, SiteStatus } from '../report/report.ts';

/** A site is never shown as `Ready` while newer revisions are unknown. Every other reason says more than that. */
export function shownReason({ reason }: SiteStatus, problem: SourceProblem | null): Reason {
  return reason === 'Ready' && problem !== null ? 'SourceUnavailable' : reason;
}
