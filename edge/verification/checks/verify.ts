import { CHECK_NAMES, type VerificationReport, type VerificationRequest } from '../contract.ts';
import { named } from '../result.ts';
import { type SiteVisits, siteVisitor, type Visit } from '../visit.ts';
import { SITE_CHECKS } from './index.ts';

export interface VerifyDependencies {
  readonly fetch: typeof globalThis.fetch;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Left of the budget for putting the report together and sending it. */
const MARGIN_MS = 250;

/** Runs every check at once, within the budget of the request: what isn't answered by then counts as not answering. */
export async function verify(
  { site, host, hostProblem, budget }: VerificationRequest,
  { fetch, now }: VerifyDependencies,
): Promise<VerificationReport> {
  const checkedAt = now();
  const visits: Promise<Visit>[] = [];
  const ask = siteVisitor(site, { fetch, signal: AbortSignal.timeout(budget - MARGIN_MS) });
  const visit: SiteVisits = (url, options) => {
    const visited = ask(url, options);
    visits.push(visited);
    return visited;
  };
  const context = { site, host, hostProblem, visit, now: checkedAt };
  const findings = await Promise.all(
    CHECK_NAMES.map(async (name) =>
      (await SITE_CHECKS[name](context)).map((finding) => named(name, finding)),
    ),
  );
  const checks = findings.flat();
  const answered = (await Promise.all(visits)).some(({ status }) => status !== null && status < 500);
  const sound = checks.every(({ status }) => status !== 'failed');
  return {
    status: answered ? (sound ? 'passed' : 'failed') : 'unreachable',
    checkedAt: new Date(checkedAt).toISOString(),
    checks,
  };
}
