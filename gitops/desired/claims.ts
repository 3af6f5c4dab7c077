import type { Manifest } from '../manifest/schema.ts';

/**
 * A site with the place in history of the commit since which it has claimed, without a break, what is contested. A
 * removal breaks it: whoever took the name meanwhile has it, and a revert of the removal doesn't take it back. What is
 * merged comes with the merge, however old its own commits are: these count among what one merge brought.
 */
export interface Claimant {
  readonly manifest: Manifest;
  readonly since: readonly [onBranch: number, anywhere: number];
}

/** `site` claims `name`, which `holder` has claimed for longer. */
export interface LostClaim {
  readonly site: string;
  readonly name: string;
  readonly holder: string;
}

/** Everything that only one site of a host can have, as kind and value. */
function eachClaim(manifest: Manifest, take: (kind: string, value: string | number) => void): void {
  for (const name of Object.values(manifest.hostnames)) take('hostname', name);
  for (const name of manifest.customDomains) take('hostname', name);
  for (const { domain, token } of manifest.domains) {
    take('domain', domain);
    take('token', token);
  }
  take('token', manifest.loaderToken);
  for (const { token } of manifest.previousLoaderTokens) take('token', token);
  for (const port of Object.values(manifest.ports)) take('port', port);
  take('container', manifest.container);
}

/** The same as one text each: `hostname shop.example.net`. */
export function claims(manifest: Manifest): string[] {
  const names: string[] = [];
  eachClaim(manifest, (kind, value) => names.push(`${kind} ${value}`));
  return names;
}

/**
 * By site, the names that another site claims too, whoever of them will have it; with `among` only names that one of
 * these claims. Asked of all sites at each revision: a text is made only of what is contested, and nothing is kept of
 * names that nobody asks about.
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

/** The younger of two sites loses, by the first claim that collides; equal places are settled by name, so nothing flaps. */
export function lostClaims(claimants: readonly Claimant[]): LostClaim[] {
  const byAge = [...claimants].sort(
    (a, b) =>
      a.since[0] - b.since[0] || a.since[1] - b.since[1] || (a.manifest.site < b.manifest.site ? -1 : 1),
  );
  const held = new Map<string, string>();
  const lost: LostClaim[] = [];
  for (const { manifest } of byAge) {
    const names = [...new Set(claims(manifest))];
    const taken = names.find((name) => held.has(name));
    const holder = taken === undefined ? undefined : held.get(taken);
    if (taken !== undefined && holder !== undefined) lost.push({ site: manifest.site, name: taken, holder });
    else for (const name of names) held.set(name, manifest.site);
  }
  return lost;
}
