import type { CheckContext } from '../check.ts';
import { failed, passed, skipped } from '../result.ts';
import { described, isProblem } from '../visit.ts';

const PROXY_ADVICE =
  'Something before the tag server changes requests: search for a foreign rule or worker on the edge hostname, and run tagyard plan for drift of route and vhosts.';

/** The tag server answers a health path under any prefix, so this request shows whether `/_/*` is forwarded. */
export async function checkUnderscorePaths({ site, visit }: CheckContext) {
  const answer = await visit(new URL('/_/healthy', site.edge));
  if (answer.status === 200 && !isProblem(answer)) return [passed(null, '/_/* reaches the tag server')];
  return [
    failed(
      null,
      `${site.edge}/_/healthy: ${described(answer)}`,
      'Deploy the newest edge worker, and check that no other route takes /_/* of the edge hostname.',
    ),
  ];
}

/** The health path answers 500 for an unknown `servertype`, which it only does if the query arrives. */
export async function checkQueryForwarded({ site, visit }: CheckContext) {
  const [plain, probed] = await Promise.all([
    visit(new URL('/healthy', site.edge)),
    visit(new URL('/healthy?servertype=tagyard', site.edge)),
  ]);
  if (plain.status !== 200 || isProblem(plain)) return [skipped(null, 'the tag server doesn’t answer')];
  if (probed.status === 500 && !isProblem(probed)) return [passed(null, 'the query arrives')];
  return [failed(null, `the query doesn’t arrive: ${described(probed)} with one, 200 without`, PROXY_ADVICE)];
}

/** The tag server answers 401 to a preview cookie without its auth, which it only does if the cookie arrives. */
export async function checkCookiesForwarded({ site, host, visit }: CheckContext) {
  const id = host?.config.id ?? null;
  if (id === null) return [skipped(null, 'only the host knows the container’s id, which this check needs')];
  const url = new URL('/_/tagyard-verification', site.edge);
  const [plain, probed] = await Promise.all([
    visit(url),
    visit(url, { headers: { cookie: `gtm_preview=${id}=env-tagyard` } }),
  ]);
  if (plain.status === null || plain.status >= 500) return [skipped(null, 'the tag server doesn’t answer')];
  if (plain.status !== 401 && probed.status === 401) return [passed(null, 'cookies arrive')];
  return [
    failed(
      null,
      `cookies don’t arrive: ${described(probed)} with a preview cookie, ${described(plain)} without`,
      PROXY_ADVICE,
    ),
  ];
}
