import { type CheckContext, forwardedDomains } from '../check.ts';
import { missingSources, neededPolicy } from '../content-security-policy.ts';
import { failed, passed, skipped } from '../result.ts';
import { described, type Visit } from '../visit.ts';
import { findPages } from './pages.ts';

const META = /<meta\b[^>]*\bhttp-equiv\s*=\s*["']?content-security-policy["']?[^>]*>/gi;

/** Reads the policies of each domain's first page, where the domain's own server forwards a prefix. */
export async function checkPolicy(context: CheckContext) {
  return await Promise.all(
    forwardedDomains(context.site).map(async (forwarded) => {
      const { domain, path } = forwarded;
      const { origin, visit } = await findPages(context, forwarded);
      if (visit.status === null || visit.status >= 500) {
        return skipped(domain, `the first page of ${domain}: ${described(visit)}`);
      }
      const policies = policiesOf(visit);
      if (policies.length === 0) return passed(domain, `the first page of ${domain} has no policy`);
      const missing = missingSources(policies, origin + path, new URL(origin));
      if (missing.length === 0) return passed(domain, `the policy of ${domain}’s first page allows the tags`);
      return failed(
        domain,
        `the policy of ${domain}’s first page doesn’t allow ${missing.join(', ')}`,
        `Add to the policy of all pages: ${neededPolicy(origin + path)}`,
      );
    }),
  );
}

function policiesOf({ headers, text }: Visit): string[] {
  const header = headers.get('content-security-policy');
  const inPage = [...text.matchAll(META)].flatMap(
    ([element]) => /\bcontent\s*=\s*(["'])(.*?)\1/is.exec(element)?.[2]?.replaceAll('&#39;', "'") ?? [],
  );
  return header === null ? inPage : [header, ...inPage];
}
