import { isReservedLabel } from './reserved-labels.ts';
import { isWithinDomain, type Manifest, registrableDomain } from './schema.ts';

/** The names of an installation. */
export interface OwnZones {
  /** The zones of sites' edge hostnames, and of their origin and preview hostnames. */
  readonly edgeDomain: string;
  readonly originDomain: string;
  /** Domains of the installation's other services. */
  readonly platformDomains: readonly string[];
}

export type SiteZones = Pick<OwnZones, 'edgeDomain' | 'originDomain'>;

/**
 * Why a name can't be that of a client's pages; `null`: it can. With a name in or above a zone of sites' hostnames or a
 * platform domain, or in the registrable domain of one, a site could take the hostname of a future site, or set cookies
 * for all sites.
 */
export function ownZoneProblem(
  name: string,
  { edgeDomain, originDomain, platformDomains }: OwnZones,
): string | null {
  const siteZone = [edgeDomain, originDomain].find((zone) => isWithinDomain(name, zone));
  if (siteZone !== undefined) return `is in ${siteZone}, where sites get their own hostnames`;
  const zone = [edgeDomain, originDomain, ...platformDomains].find(
    (own) => isWithinDomain(name, registrableDomain(own) ?? own) || isWithinDomain(own, name),
  );
  return zone === undefined ? null : `belongs to this installation, like ${zone}`;
}

/** Whether a label directly under a zone is not for a site: it is that of the host, or people expect the operator there. */
export function isKeptLabel(label: string, host: string): boolean {
  return label === host || isReservedLabel(label);
}

/** Why a name can't be a site's own hostname in `zone`; `null`: it can. */
function hostnameProblem(
  name: string,
  { setting, zone, host }: { readonly setting: string; readonly zone: string; readonly host: string },
): string | null {
  if (isWithinDomain(zone, name)) return `is the zone of all sites’ hostnames, or above it`;
  if (!isWithinDomain(name, zone))
    return `is not in ${zone} (${setting}), where sites get their own hostnames`;
  const label =
    name
      .slice(0, -zone.length - 1)
      .split('.')
      .at(-1) ?? '';
  return label === host ? `is the host’s own: ${label}.${zone}` : null;
}

/** The names of a manifest that a site can't have, with the reasons. */
export function refusedNames(
  { hostnames, domains, customDomains }: Pick<Manifest, 'hostnames' | 'domains' | 'customDomains'>,
  zones: SiteZones,
  host: string,
): Map<string, string> {
  const edge = { setting: 'EDGE_DOMAIN', zone: zones.edgeDomain, host };
  const origin = { setting: 'ORIGIN_DOMAIN', zone: zones.originDomain, host };
  const judged: [string, string | null][] = [
    [hostnames.edge, hostnameProblem(hostnames.edge, edge)],
    [hostnames.origin, hostnameProblem(hostnames.origin, origin)],
    [hostnames.preview, hostnameProblem(hostnames.preview, origin)],
  ];
  for (const name of [...domains.map(({ domain }) => domain), ...customDomains]) {
    const zone = [edge.zone, origin.zone].find((own) => isWithinDomain(own, name));
    judged.push([
      name,
      zone === undefined ? null : `is ${zone}, the zone of all sites’ hostnames, or above it`,
    ]);
  }
  return new Map(
    judged.flatMap(([name, problem]) => (problem === null ? [] : [[name, `${name} ${problem}`]])),
  );
}
