import { activeDomains, type CheckContext } from '../check.ts';
import type { NameAnswer, SiteDescription } from '../contract.ts';
import { type Finding, passed, skipped } from '../result.ts';
import { safariVerdict } from '../safari.ts';

/** No verdict promises a lifetime. */
const NO_PROMISE = 'A browser may delete cookies sooner without notice.';

/** How long restoration helps: as long as the browser keeps the cookie by which the profile is found. */
const RESTORATION = {
  none: () => '',
  id: () => '; restoration ends with the cookies, because the visitor’s id is one of them',
  master_cookie: ({ masterCookie = '' }: SiteDescription) =>
    `; restored as long as the browser keeps the site’s own ${`${masterCookie} masterCookie`.trim()}`,
};
const KEY_ADVICE = {
  none: '',
  id: ' Or name an id cookie of the site’s own server in modules.cookie_restoration.masterCookie.',
  master_cookie: '',
};

/**
 * A verdict for each domain, for the best address of its pages: a prefix on their own host, a custom domain under the same
 * registrable part, else the edge hostname. Short-lived cookies are not a fault of the site, so this never fails,
 * but gives advice. Nothing renews the visitor's id: where Safari limits it, it ends 7 days after it was set.
 */
export function checkCookieLifetime({ site, host }: CheckContext) {
  if (host === null) return [skipped(null, 'the host, which queries the resolver, gave no report')];
  const { names } = host;
  const edge = names.find(({ kind }) => kind === 'edge');
  return activeDomains(site).map(({ domain, sameOrigin }): Finding => {
    const restoration = RESTORATION[site.restoresBy ?? 'none'](site);
    const full = (by: string) => passed(domain, `full (${by})${restoration}. ${NO_PROMISE}`);
    if (sameOrigin !== undefined) return full(`below ${sameOrigin}, from the pages’ own origin`);
    const page = names.find(({ kind, name }) => kind === 'page' && name === domain);
    if (page === undefined || edge === undefined) return skipped(domain, `${domain} wasn’t resolved`);
    if (page.addresses.length === 0) {
      return skipped(domain, `${domain} doesn’t resolve (${page.problem ?? 'no address'})`);
    }
    const own = names.filter(
      ({ kind, registrable }) => kind === 'custom' && registrable === page.registrable,
    );
    const verdicts = (own.length === 0 ? [edge] : own).map((tag) => ({
      tag,
      reason: safariVerdict(page, tag),
    }));
    const unlimited = verdicts.find(({ reason }) => reason === null);
    if (unlimited !== undefined) return full(`by ${unlimited.tag.name}`);
    const [{ tag, reason } = { tag: edge, reason: null }] = verdicts;
    const detail = `7 days, because ${reason}${restoration}`;
    return passed(domain, detail, advice(page, tag, own.length > 0) + KEY_ADVICE[site.restoresBy ?? 'none']);
  });
}

function advice(page: NameAnswer, tag: NameAnswer, hasOwn: boolean): string {
  if (!hasOwn) {
    return `Add a custom domain under ${page.registrable ?? page.name} and paste its snippet, so that cookies are set by a host of that domain.`;
  }
  return `Point ${tag.name} with an address record, not a CNAME, to an address in the network of ${page.name} (the same /16, or /64 of IPv6), or serve it from ${page.name} itself.`;
}
