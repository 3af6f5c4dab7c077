import type { HostReport, SiteDescription } from './contract.ts';
import type { Finding } from './result.ts';
import type { SiteVisits } from './visit.ts';

/** What a check works with: the site, what its host said of it, and a way to ask it things from outside. */
export interface CheckContext {
  readonly site: SiteDescription;
  readonly host: HostReport | null;
  /** Why there is no host report. */
  readonly hostProblem: string | null;
  readonly visit: SiteVisits;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** One thing to know of a site. It never rejects for what the site does: that is a finding. */
export type SiteCheck = (context: CheckContext) => Promise<readonly Finding[]> | readonly Finding[];

/** The hosts on which a site's pages ask for their tags. */
export function tagHosts({ edge, customDomains }: SiteDescription): URL[] {
  return [edge, ...customDomains].map((base) => new URL(base));
}

export function activeDomains({ domains }: SiteDescription): SiteDescription['domains'] {
  return domains.filter(({ active }) => active);
}

/** The edge, and each custom domain, with each domain that its pages may be on: every one of them at least once. */
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
