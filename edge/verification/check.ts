import type { HostReport, SiteDescription } from './contract.ts';
import type { Finding } from './result.ts';
import type { SiteVisits } from './visit.ts';

/** What a check gets: the site, its host's report, and a function that visits the site from outside. */
export interface CheckContext {
  readonly site: SiteDescription;
  readonly host: HostReport | null;
  /** Why there is no host report. */
  readonly hostProblem: string | null;
  readonly visit: SiteVisits;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * The operator has confirmed that Google's gtm.js depends on the place that the edge sends (`SCRIPTS_BY_PLACE`,
   * docs/conformance.md).
   */
  readonly scriptsByPlace: boolean;
}

/** Checks one property of a site. It reports a fault of the site as a finding and never rejects because of one. */
export type SiteCheck = (context: CheckContext) => Promise<readonly Finding[]> | readonly Finding[];

/** The hosts that a site's pages load their tags from. */
export function tagHosts({ edge, customDomains }: SiteDescription): URL[] {
  return [edge, ...customDomains].map((base) => new URL(base));
}

export function activeDomains({ domains }: SiteDescription): SiteDescription['domains'] {
  return domains.filter(({ active }) => active);
}

/** An active domain whose own server forwards the prefix `path`. */
export interface ForwardedDomain {
  readonly domain: string;
  readonly path: string;
}

export function forwardedDomains(site: SiteDescription): ForwardedDomain[] {
  return activeDomains(site).flatMap(({ domain, sameOrigin: path }) =>
    path === undefined ? [] : [{ domain, path }],
  );
}

/** Pairs of a host and a page's domain that contain every host and every active domain at least once. */
export function hostsAndDomains(site: SiteDescription) {
  const [edge, ...others] = tagHosts(site);
  const [primary, ...rest] = activeDomains(site);
  if (edge === undefined || primary === undefined) return [];
  return [
    { host: edge, page: primary },
    ...rest.map((page) => ({ host: edge, page })),
    ...others.map((host) => ({ host, page: primary })),
  ];
}
