import { within } from '../../base/single-flight.ts';
import { activeDomains, type CheckContext, tagHosts } from '../check.ts';
import { missingSources, neededPolicy } from '../content-security-policy.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';
import { described, type Visit } from '../visit.ts';
import { findPages } from './pages.ts';

const META = /<meta\b[^>]*\bhttp-equiv\s*=\s*["']?content-security-policy["']?[^>]*>/gi;

/** How long a server that may have nothing to do with Tagyard may hold up a verification. */
const PAGE_TIMEOUT_MS = 3000;

/**
 * Reads the policies of each domain's first page. They must allow the address of the domain's snippet: the prefix that
 * the domain's own server forwards, else one of the site's hosts.
 */
export async function checkPolicy(context: CheckContext): Promise<Finding[]> {
  const findings = activeDomains(context.site).map(({ domain, sameOrigin }) =>
    sameOrigin === undefined ? checkPage(context, domain) : checkPrefix(context, domain, sameOrigin),
  );
  return (await Promise.all(findings)).flat();
}

async function checkPrefix(context: CheckContext, domain: string, path: string): Promise<Finding> {
  const { origin, visit } = await findPages(context, { domain });
  if (!isPageAnswer(visit)) return skipped(domain, `the first page of ${domain}: ${described(visit)}`);
  return judged(domain, { visit, origin, base: origin + path, isUsed: true });
}

/** No finding if no page answers: nothing of Tagyard depends on such a server. */
async function checkPage(context: CheckContext, domain: string): Promise<Finding[]> {
  const pages = await within(findPages(context, { domain }), PAGE_TIMEOUT_MS);
  if (pages === undefined || !isPageAnswer(pages.visit)) return [];
  const bases = snippetBases(context, domain);
  const used = bases.find((base) => pages.visit.text.includes(`${base}/l/`));
  const [preferred = ''] = bases;
  return [judged(domain, { ...pages, base: used ?? preferred, isUsed: used !== undefined })];
}

/**
 * The addresses that a page's snippet may have, in the order in which the API prefers them: custom domains under the
 * domain, those under its registrable part, the edge hostname, all others.
 */
function snippetBases({ site, host }: CheckContext, domain: string): string[] {
  const registrableOf = (name: string) =>
    host?.names.find((answer) => answer.name === name)?.registrable ?? null;
  const own = registrableOf(domain);
  const rank = (hostname: string) => {
    if (hostname === domain || hostname.endsWith(`.${domain}`)) return 0;
    return own !== null && registrableOf(hostname) === own ? 1 : 3;
  };
  const [edge, ...others] = tagHosts(site);
  const ranked = others.map(({ origin, hostname }) => ({ origin, order: rank(hostname) }));
  if (edge !== undefined) ranked.push({ origin: edge.origin, order: 2 });
  return ranked.toSorted((a, b) => a.order - b.order).map(({ origin }) => origin);
}

interface Page {
  readonly visit: Visit;
  readonly origin: string;
  /** The address from which its snippet loads. */
  readonly base: string;
  /** False: the page has no snippet, as far as its text shows. */
  readonly isUsed: boolean;
}

function judged(domain: string, { visit, origin, base, isUsed }: Page): Finding {
  const policies = policiesOf(visit);
  if (policies.length === 0) return passed(domain, `the first page of ${domain} has no security policy`);
  const missing = missingSources(policies, base, new URL(origin));
  if (missing.length === 0) return passed(domain, `the policy of ${domain}’s first page allows the tags`);
  const detail = `the policy of ${domain}’s first page doesn’t allow ${missing.join(', ')}`;
  const fix = `Add to the policy of all pages: ${neededPolicy(base)}`;
  if (isUsed) return failed(domain, detail, fix);
  return passed(domain, `${detail}; the page itself has no snippet`, `If a page has the snippet: ${fix}`);
}

/** On Cloudflare, a server that doesn't answer results in a status, too (520 to 530). */
const isPageAnswer = ({ status }: Visit) => status !== null && status < 500;

function policiesOf({ headers, text }: Visit): string[] {
  const header = headers.get('content-security-policy');
  const inPage = [...text.matchAll(META)].flatMap(
    ([element]) => /\bcontent\s*=\s*(["'])(.*?)\1/is.exec(element)?.[2]?.replaceAll('&#39;', "'") ?? [],
  );
  return header === null ? inPage : [header, ...inPage];
}
