import { probeHeader } from '../../base/probe.ts';
import type { Sign } from '../../base/signing.ts';
import { CHECK_NAMES, type VerificationReport, type VerificationRequest } from '../contract.ts';
import { named } from '../result.ts';
import { isOwnHost, type SiteVisits, siteVisitor, type Visit } from '../visit.ts';
import { SITE_CHECKS } from './index.ts';

interface VerifyDependencies {
  readonly fetch: typeof globalThis.fetch;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** See `CheckContext`. */
  readonly scriptsByPlace: boolean;
  /** Signs the marks of visits; undefined: visits have no mark. */
  readonly sign: Sign | undefined;
}

/** The part of the budget that is reserved for building and sending the report. */
const MARGIN_MS = 250;

/** Runs all checks concurrently, within the budget of the request. A visit that takes longer counts as unanswered. */
export async function verify(
  { site, host, hostProblem, budget }: VerificationRequest,
  { fetch, now, scriptsByPlace, sign }: VerifyDependencies,
): Promise<VerificationReport> {
  const checkedAt = now();
  const visits: Promise<Visit>[] = [];
  const { hostname } = new URL(site.edge);
  const mark =
    sign &&
    ((method: string, pathname: string) => probeHeader(sign, { method, hostname, pathname }, checkedAt));
  const send = siteVisitor(site, { fetch, signal: AbortSignal.timeout(budget - MARGIN_MS), mark });
  const visit: SiteVisits = (url, options) => {
    const visited = send(url, options);
    if (isOwnHost(site, url)) visits.push(visited);
    return visited;
  };
  const context = { site, host, hostProblem, visit, now: checkedAt, scriptsByPlace };
  const findings = await Promise.all(
    CHECK_NAMES.map(async (name) =>
      (await SITE_CHECKS[name](context)).map((finding) => named(name, finding)),
    ),
  );
  const checks = findings.flat();
  const answered = (await Promise.all(visits)).some(({ status }) => status !== null && status < 500);
  const allPassed = checks.every(({ status }) => status !== 'failed');
  return {
    status: answered ? (allPassed ? 'passed' : 'failed') : 'unreachable',
    checkedAt: new Date(checkedAt).toISOString(),
    checks,
  };
}
