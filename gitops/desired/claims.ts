import { isProven, type Manifest, provenHosts } from '../../sites/manifest/schema.ts';
import type { ClaimAge } from '../../sites/repo/ages.ts';

/**
 * A site, and how long it has claimed the contested names without a break. A removal ends the claim. Another site may
 * then take the name, and keeps it after a revert of the removal.
 */
export interface Claimant {
  readonly manifest: Manifest;
  readonly since: ClaimAge;
}

/** `site` claims `name`, which `holder` has claimed for longer. */
interface LostClaim {
  readonly site: string;
  readonly name: string;
  readonly holder: string;
}

/** Calls `take` for everything that only one site of a host can have. */
function eachClaim(manifest: Manifest, take: (kind: string, value: string | number) => void): void {
  for (const name of Object.values(manifest.hostnames)) take('hostname', name);
  for (const name of provenHosts(manifest)) take('hostname', name);
  for (const { domain, token } of manifest.domains) {
    if (isProven(manifest, domain)) take('domain', domain);
    take('token', token);
  }
  take('token', manifest.loaderToken);
  for (const { token } of manifest.previousLoaderTokens) take('token', token);
  for (const port of Object.values(manifest.ports)) take('port', port);
  take('container', manifest.container);
}

/** Everything that only one site of a host can have, as texts like `hostname shop.example.net`. */
export function claims(manifest: Manifest): string[] {
  const names: string[] = [];
  eachClaim(manifest, (kind, value) => names.push(`${kind} ${value}`));
  return names;
}

/**
 * The names that more than one site claims, by site. With `among`, only names that one of these sites claims. This runs
 * over all sites at each revision, so it makes texts for contested names only, and keeps no names outside `among`.
 */
export function contestedNames(
  manifests: Iterable<Manifest>,
  among?: Iterable<Manifest>,
): Map<string, Set<string>> {
  const holders = new Map<string, Map<string | number, string | null>>();
  const ofKind = (kind: string) => {
    const known = holders.get(kind) ?? new Map<string | number, string | null>();
    holders.set(kind, known);
    return known;
  };
  for (const manifest of among ?? []) eachClaim(manifest, (kind, value) => ofKind(kind).set(value, null));
  const found = new Map<string, Set<string>>();
  const add = (site: string, name: string) => found.set(site, (found.get(site) ?? new Set()).add(name));
  for (const manifest of manifests) {
    eachClaim(manifest, (kind, value) => {
      const holder = ofKind(kind).get(value);
      if (holder === null || (holder === undefined && among === undefined)) {
        ofKind(kind).set(value, manifest.site);
      } else if (holder !== undefined && holder !== manifest.site) {
        for (const site of [holder, manifest.site]) add(site, `${kind} ${value}`);
      }
    });
  }
  return found;
}

/** Orders claimants, the oldest claim first. Between equal ages the site's name decides, so the order is stable. */
export function byAge(a: Claimant, b: Claimant): number {
  return a.since[0] - b.since[0] || a.since[1] - b.since[1] || (a.manifest.site < b.manifest.site ? -1 : 1);
}

/** The sites that lose a name. The younger claimant loses, and the first of its taken names is reported. */
export function lostClaims(claimants: readonly Claimant[]): LostClaim[] {
  const oldestFirst = [...claimants].sort(byAge);
  const held = new Map<string, string>();
  const lost: LostClaim[] = [];
  for (const { manifest } of oldestFirst) {
    const names = [...new Set(claims(manifest))];
    const taken = names.find((name) => held.has(name));
    const holder = taken === undefined ? undefined : held.get(taken);
    if (taken !== undefined && holder !== undefined) lost.push({ site: manifest.site, name: taken, holder });
    else for (const name of names) held.set(name, manifest.site);
  }
  return lost;
}
