import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { Reason } from '../report/report.ts';
import { claims } from './claims.ts';
import { registrableDomains } from './client-domains.ts';

/** A site of this host at some revision. */
export interface DesiredSite {
  readonly site: string;
  readonly blob: string;
  /** The manifest to apply: the newest or the last valid one. `null`: no manifest is usable, so nothing changes. */
  readonly manifest: LoadedManifest | null;
  /** Why the newest manifest is not applied; `null` if it is. */
  readonly stalled: { readonly reason: Reason; readonly message: string } | null;
}

/** A site that the revision assigns to another host. */
export interface OtherHostSite {
  readonly host: string;
  readonly state: Manifest['state'];
  readonly protect: boolean;
}

export interface DesiredState {
  readonly revision: string;
  /** The same object in two revisions means the same desired state of that site. */
  readonly sites: ReadonlyMap<string, DesiredSite>;
  readonly onOtherHosts: ReadonlyMap<string, OtherHostSite>;
}

/** The desired state of a site, on this host or another one. */
export function desiredFor(
  { sites, onOtherHosts }: DesiredState,
  site: string,
): DesiredSite | OtherHostSite | undefined {
  return sites.get(site) ?? onOtherHosts.get(site);
}

/** Sites of this host whose desired state differs between the two revisions. */
export function changedSites(before: DesiredState, after: DesiredState): string[] {
  if (before === after) return [];
  const changed: string[] = [];
  for (const [site, desired] of after.sites) if (before.sites.get(site) !== desired) changed.push(site);
  for (const site of before.sites.keys()) if (!after.sites.has(site)) changed.push(site);
  return changed;
}

const HOLDERS = new WeakMap<DesiredState, ReadonlyMap<string, string>>();

/** The site that holds each claim. Computed on the first call for a revision. */
export function holdersOf(state: DesiredState): ReadonlyMap<string, string> {
  const known = HOLDERS.get(state);
  if (known !== undefined) return known;
  const holders = new Map<string, string>();
  for (const { site, manifest } of state.sites.values()) {
    if (manifest?.state === 'present') for (const name of claims(manifest)) holders.set(name, site);
  }
  HOLDERS.set(state, holders);
  return holders;
}

/** By registrable domain, the clients that have names in it, each with one of its sites there. */
export function clientsOf({ sites }: DesiredState): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const clients = new Map<string, Map<string, string>>();
  for (const { site, manifest } of sites.values()) {
    if (manifest?.state !== 'present') continue;
    for (const domain of registrableDomains(manifest)) {
      const known = clients.get(domain) ?? new Map<string, string>();
      clients.set(domain, known.set(manifest.client, known.get(manifest.client) ?? site));
    }
  }
  return clients;
}
