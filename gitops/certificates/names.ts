import { tlsOf } from '../../sites/manifest/certificate-check.ts';
import { provenHosts } from '../../sites/manifest/schema.ts';
import type { TlsMode } from '../appliers/proxy/certificates.ts';
import type { DesiredSite, DesiredState } from '../desired/desired-state.ts';
import type { Expected } from './policy.ts';

/** A name that needs a certificate. */
export interface WantedName {
  readonly host: string;
  readonly site: string;
  /** The site is not ready until this name has a certificate. False for a custom domain. */
  readonly own: boolean;
  readonly expected: Expected;
}

interface WantedNames {
  readonly names: ReadonlyMap<string, WantedName>;
  /** Sites of which neither the newest manifest nor an earlier one is usable: their names are unknown. */
  readonly unknown: ReadonlySet<string>;
}

/** The names of all sites with this `tls`. `addresses` are the host's public addresses. */
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
  if (manifest === null || manifest.state === 'absent') return [];
  const { hostnames } = manifest;
  const own = [hostnames.origin, hostnames.preview].map((host) => ({
    host,
    site,
    own: true,
    // Tagyard writes the record, always with an address.
    expected: { addresses, alias: null },
  }));
  const custom = provenHosts(manifest).map((host) => ({
    host,
    site,
    own: false,
    expected: { addresses, alias: hostnames.origin },
  }));
  return [...own, ...custom].filter(({ host }) => tlsOf(manifest.tls, host) === tls);
}
