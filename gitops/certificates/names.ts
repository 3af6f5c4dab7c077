import type { TlsMode } from '../appliers/proxy/certificates.ts';
import type { DesiredState, DesiredSite } from '../desired/desired-state.ts';
import type { Expected } from './policy.ts';

/** A name that wants a certificate. */
export interface WantedName {
  readonly host: string;
  readonly site: string;
  /** The site's own: without it the site isn't served. A custom domain is one way more to it. */
  readonly own: boolean;
  readonly expected: Expected;
}

export interface WantedNames {
  readonly names: ReadonlyMap<string, WantedName>;
  /** Sites of which isn't known what they want: their manifest is refused and there is no earlier one. */
  readonly unknown: ReadonlySet<string>;
}

/** The names of all sites with this `tls`; `addresses` are those under which this host is reached. */
export function wantedNames(
  desired: DesiredState,
  tls: TlsMode,
  addresses: readonly string[] = [],
): WantedNames {
  const entries = [...desired.sites.values()];
  const names = entries
    .flatMap((entry) => namesOf(entry, tls, addresses))
    .map((name) => [name.host, name] as const);
  const unknown = entries.flatMap(({ site, manifest }) => (manifest === null ? [site] : []));
  return { names: new Map(names), unknown: new Set(unknown) };
}

function namesOf({ site, manifest }: DesiredSite, tls: TlsMode, addresses: readonly string[]): WantedName[] {
  if (manifest === null || manifest.state === 'absent' || manifest.tls.mode !== tls) return [];
  const { hostnames, customDomains } = manifest;
  const own = [hostnames.origin, hostnames.preview].map((host) => ({
    host,
    site,
    own: true,
    // Its record is ours, and says the address.
    expected: { addresses, alias: null },
  }));
  const custom = customDomains.map((host) => ({
    host,
    site,
    own: false,
    expected: { addresses, alias: hostnames.origin },
  }));
  return [...own, ...custom];
}
