import type { Log } from '../../base/log.ts';
import type { PartCheck } from './report.ts';

/** Logs what the checks of a start have found: a line for each finding, and one for all of them. */
export function logFindings(checks: readonly PartCheck[], log: Log): void {
  for (const { name, status, detail, fix } of checks) {
    if (status === 'failed') log.warn({ check: name }, `${detail}. ${fix}`);
  }
  log.info({}, summaryOfChecks(checks));
}

/** `21 checks: 1 finding; not checked: edge, preview`. */
export function summaryOfChecks(checks: readonly PartCheck[]): string {
  const named = (wanted: PartCheck['status']) =>
    checks.flatMap(({ name, status }) => (status === wanted ? [name] : []));
  const failed = named('failed');
  const skipped = named('skipped');
  const found = failed.length === 0 ? 'nothing to fix' : `to fix: ${failed.join(', ')}`;
  return `${checks.length} checks: ${found}${skipped.length === 0 ? '' : `; not checked: ${skipped.join(', ')}`}`;
}
