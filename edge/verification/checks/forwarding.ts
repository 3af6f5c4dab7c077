import type { CheckContext } from '../check.ts';
import { failed, passed, skipped } from '../result.ts';
import { described, isProblem } from '../visit.ts';

const PROXY_ADVICE =
  'Something before the tag server changes requests: look for a rule or worker of another on the edge hostname, and run tagyard plan for drift of route and vhosts.';

/** A health path is answered by the tag server whatever stands before it, so this one shows the way there. */
export async function checkUnderscorePaths({ site, visit }: CheckContext) {
  const answer = await visit(new URL('/_/healthy', site.edge));
  if (answer.status === 200 && !isProblem(answer)) return [passed(null, '/_/* reaches the tag server')];
  return [
    failed(
      null,
      `${site.edge}/_/healthy: ${described(answer)}`,
      'Deploy the newest edge worker, and see that no other route takes /_/* of the edge hostname.',
    ),
  ];
}

/** The health path answers 500 for a server type that it doesn't know: only a query that arrives makes it do so. */
export async function checkQueryForwarded({ site, visit }: CheckContext) {
  const [plain, asked] = await Promise.all([
    visit(new URL('/healthy', site.edge)),
    visit(new URL('/healthy?servertype=tagyard', site.edge)),
  ]);
  if (plain.status !== 200 || isProblem(plain)) return [skipped(null, 'the tag server doesn’t answer')];
  if (asked.status === 500 && !isProblem(asked)) return [passed(null, 'the query arrives')];
  return [failed(null, `the query doesn’t arrive: ${described(asked)} with one as without`, PROXY_ADVICE)];
}

/** A preview cookie without its auth is refused with 401: only a cookie that arrives makes it do so. */
export async function checkCookiesForwarded({ site, host, visit }: CheckContext) {
  const id = host?.config.id ?? null;
  if (id === null) return [skipped(null, 'only the host knows the container’s id, which the proof needs')];
  const url = new URL('/_/tagyard-verification', site.edge);
  const [plain, asked] = await Promise.all([
    visit(url),
    visit(url, { headers: { cookie: `gtm_preview=${id}=env-tagyard` } }),
  ]);
  if (plain.status === null || plain.status >= 500) return [skipped(null, 'the tag server doesn’t answer')];
  if (plain.status !== 401 && asked.status === 401) return [passed(null, 'cookies arrive')];
  return [
    failed(
      null,
      `cookies don’t arrive: ${described(asked)} with a preview cookie, ${described(plain)} without`,
      PROXY_ADVICE,
    ),
  ];
}
