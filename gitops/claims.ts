import type { Manifest } from './manifest/schema.ts';

/**
 * A site with the place in history of the commit since which it has claimed, without a break, what is contested. A
 * removal breaks it: whoever took the name meanwhile has it, and a revert of the removal doesn't take it back.
 */
export interface Claimant {
  readonly manifest: Manifest;
  readonly since: number;
}

/** `site` claims `name`, which `holder` has claimed for longer. */
export interface ContestedClaim {
  readonly site: string;
  readonly name: string;
  readonly holder: string;
}

/** Everything that only one site of a host can have. */
export function claims(manifest: Manifest): string[] {
  const { hostnames, customDomains, domains, ports } = manifest;
  return [
    ...Object.values(hostnames).map((name) => `hostname ${name}`),
    ...customDomains.map((name) => `hostname ${name}`),
    ...domains.map(({ domain }) => `domain ${domain}`),
    ...domains.map(({ token }) => `token ${token}`),
    ...[manifest.loaderToken, ...manifest.previousLoaderTokens.map(({ token }) => token)].map(
      (token) => `token ${token}`,
    ),
    ...Object.values(ports).map((port) => `port ${port}`),
    `container ${manifest.container}`,
  ];
}

/** By site, the names that another site claims too, whoever of them will have it. */
export function rivals(manifests: Iterable<Manifest>): Map<string, Set<string>> {
  const claimants = new Map<string, Set<string>>();
  for (const manifest of manifests) {
    for (const name of claims(manifest)) {
      claimants.set(name, (claimants.get(name) ?? new Set()).add(manifest.site));
    }
  }
  const found = new Map<string, Set<string>>();
  for (const [name, sites] of claimants) {
    if (sites.size < 2) continue;
    for (const site of sites) found.set(site, (found.get(site) ?? new Set()).add(name));
  }
  return found;
}

/** The younger of two sites loses, by the first claim that collides; equal places are settled by name, so nothing flaps. */
export function contested(claimants: readonly Claimant[]): ContestedClaim[] {
  const byAge = [...claimants].sort(
    (a, b) => a.since - b.since || (a.manifest.site < b.manifest.site ? -1 : 1),
  );
  const held = new Map<string, string>();
  const lost: ContestedClaim[] = [];
  for (const { manifest } of byAge) {
    const names = [...new Set(claims(manifest))];
    const taken = names.find((name) => held.has(name));
    const holder = taken === undefined ? undefined : held.get(taken);
    if (taken !== undefined && holder !== undefined) lost.push({ site: manifest.site, name: taken, holder });
    else for (const name of names) held.set(name, manifest.site);
  }
  return lost;
}
