import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { isProven, type Manifest, registrableDomain } from '../../sites/manifest/schema.ts';
import { SECRET_MEMBERS } from '../../sites/manifest/secret-members.ts';
import { byAge, type Claimant } from './claims.ts';

/** A claimant; `applied`: the registrable domains of its site as this host last applied it. */
interface DomainClaimant extends Claimant {
  readonly applied: ReadonlySet<string>;
}

/** `site` has names in `domain`, which belongs to the client of the site `holder`. */
interface LostDomain {
  readonly site: string;
  readonly domain: string;
  readonly holder: string;
}

const DOMAINS = new WeakMap<Manifest, ReadonlySet<string>>();

/**
 * The proven registrable domains of a site's pages. Its first-party hosts are in the same domains. Computed once per
 * manifest.
 */
export function registrableDomains(manifest: Manifest): ReadonlySet<string> {
  const known = DOMAINS.get(manifest);
  if (known !== undefined) return known;
  const proven = manifest.domains.filter(({ domain }) => isProven(manifest, domain));
  const domains = new Set(proven.map(({ domain }) => registrableDomain(domain) ?? domain));
  DOMAINS.set(manifest, domains);
  return domains;
}

/** The ciphertexts of a manifest, or of these members, each in one spelling. */
export function ciphertexts(manifest: Manifest, members?: readonly string[]): ReadonlySet<string> {
  const texts = SECRET_MEMBERS.flatMap(({ name, read }) => {
    const armored = members?.includes(name) === false ? undefined : read(manifest);
    return armored === undefined ? [] : [ciphertextOf(armored)];
  });
  return new Set(texts);
}

/** Those of a site that aren't bound to its container, so that another site's manifest may have a copy. */
export function unboundCiphertexts(
  manifest: Manifest & { readonly unbound?: readonly string[] },
): ReadonlySet<string> {
  return ciphertexts(manifest, manifest.unbound ?? []);
}

/** The fingerprints of a site's secrets: those that are bound to its container, or the others. */
function secretPrints(
  { config, serviceAccountKey, tlsKey, unbound = [] }: LoadedManifest,
  isBound: boolean,
): ReadonlySet<string> {
  const secrets = { containerConfig: config, 'serviceAccount.key': serviceAccountKey, 'tls.key': tlsKey };
  return new Set(
    Object.entries(secrets).flatMap(([name, secret]) =>
      secret !== undefined && secret.reveal() !== '' && unbound.includes(name) !== isBound
        ? [secret.fingerprint]
        : [],
    ),
  );
}

/**
 * By site, the site of another client that has one of its secrets bound to its container, while this site hasn't: the
 * secret was copied before it was bound. With `among`, only secrets of these sites count.
 */
export function copiedSecrets(live: readonly LoadedManifest[], among = live): Map<string, string> {
  const wanted = new Set(among.flatMap((one) => [...secretPrints(one, true), ...secretPrints(one, false)]));
  const bound = live.flatMap((holder) => [...secretPrints(holder, true)].map((print) => ({ print, holder })));
  const originals = Map.groupBy(
    bound.filter(({ print }) => wanted.has(print)),
    ({ print }) => print,
  );
  return new Map(
    live.flatMap((one) => {
      const same = [...secretPrints(one, false)].flatMap((print) => originals.get(print) ?? []);
      const original = same.find(({ holder }) => holder.client !== one.client)?.holder;
      return original === undefined ? [] : [[one.site, original.site] as const];
    }),
  );
}

/** A ciphertext without the line breaks and lines around it, which don't matter. */
export const ciphertextOf = (armored: string): string => armored.replace(/-----[^-]+-----|\s/g, '');

/**
 * By site, its registrable domains in which several clients have sites. With `among`, only domains of these sites
 * count, which saves time: this runs over all sites at each revision. With `of`, the same for other things that belong
 * to one client.
 */
export function disputedDomains<One extends Manifest>(
  manifests: readonly One[],
  among?: readonly One[],
  of: (manifest: One) => ReadonlySet<string> = registrableDomains,
): Map<string, Set<string>> {
  const wanted = among && new Set(among.flatMap((one) => [...of(one)]));
  const clients = new Map<string, string>();
  const disputed = new Set<string>();
  for (const manifest of manifests) {
    for (const one of of(manifest)) {
      if (wanted?.has(one) === false) continue;
      if ((clients.get(one) ?? manifest.client) !== manifest.client) disputed.add(one);
      clients.set(one, manifest.client);
    }
  }
  if (disputed.size === 0) return new Map();
  const found = manifests.map(
    (manifest) => [manifest.site, new Set([...of(manifest)].filter((one) => disputed.has(one)))] as const,
  );
  return new Map(found.filter(([, its]) => its.size > 0));
}

/**
 * The sites whose registrable domain belongs to another client. A domain belongs to the client of the oldest site for
 * which it was applied, otherwise to the client of the site that has claimed it the longest. Applied domains stay
 * valid, because two clients may have had names in one domain before this rule. The order of the claimants doesn't
 * matter.
 */
export function lostDomains(
  claimants: readonly DomainClaimant[],
  disputed: ReadonlyMap<string, ReadonlySet<string>>,
): LostDomain[] {
  const oldestFirst = [...claimants].sort(byAge);
  const held = new Map<string, Manifest>();
  const hold = (domain: string, manifest: Manifest) => held.set(domain, held.get(domain) ?? manifest);
  for (const { manifest, applied } of oldestFirst) for (const domain of applied) hold(domain, manifest);
  const lost: LostDomain[] = [];
  for (const { manifest, applied } of oldestFirst) {
    const { site, client } = manifest;
    const fresh = [...(disputed.get(site) ?? [])].filter((domain) => !applied.has(domain));
    const taken = fresh.find((domain) => (held.get(domain)?.client ?? client) !== client);
    const holder = taken === undefined ? undefined : held.get(taken);
    if (taken !== undefined && holder !== undefined) lost.push({ site, domain: taken, holder: holder.site });
    else for (const domain of fresh) hold(domain, manifest);
  }
  return lost;
}
