import { blockedHost, blockedPath, describeRule } from '../block-lists.ts';
import { type CheckContext, tagHosts } from '../check.ts';
import { type Finding, passed } from '../result.ts';

/** What Google's tags request of the tag server by default (docs/facts.md, Web container script). */
const GOOGLE_ADDRESSES = [
  '/gtm.js?id=GTM-…',
  '/gtag/js?id=G-…',
  '/gtag/destination?id=AW-…&l=dataLayer&cx=c',
  '/ns.html?id=GTM-…',
  '/g/collect?v=2&tid=G-…',
];

/**
 * Which of a site's addresses the common blocking lists match. A person's blocker isn't a fault of the site, so this
 * always passes and gives advice.
 */
export function checkBlockLists({ site }: CheckContext): Finding[] {
  const edge = new URL(site.edge).host;
  const hosts = tagHosts(site).map(({ host, hostname }): Finding => {
    const isOwn = host !== edge;
    const rule = blockedHost(hostname, { isOwn });
    if (rule === null) return passed(hostname, `no common list names ${hostname}`);
    return passed(hostname, `${hostname}: ${describeRule(rule)}`, advice(isOwn));
  });
  const addresses = [...GOOGLE_ADDRESSES, ...site.proxyPaths].filter((path) => blockedPath(path) !== null);
  return [...hosts, passed(null, `EasyPrivacy blocks on every host: ${addresses.join(', ')}`)];
}

function advice(isCustom: boolean): string {
  return isCustom
    ? 'Add a custom domain with a neutral name, such as the name of the shop, and paste its snippet.'
    : 'Add a custom domain under a domain of the site and paste its snippet.';
}
