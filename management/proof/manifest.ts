import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import { isWithinDomain, type ManifestInput } from '../../sites/manifest/schema.ts';
import type { Settings } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import { unprovenDomains } from '../records/domain-proofs.repository.ts';

/** The names whose registrable domains need a proof. */
function provableNames({
  domains,
  customDomains = [],
}: Pick<ManifestInput, 'domains' | 'customDomains'>): string[] {
  return [...domains.map(({ domain }) => domain), ...customDomains];
}

/**
 * Returns the manifest with `unproven` set to exactly those registrable domains of its names that have no proof for this
 * client (unchanged if proofs are off). What it listed before doesn't count: it may be old, or another client's.
 */
export async function markUnproven<Given extends ManifestInput>(
  db: Database,
  { domainProof }: Pick<Settings, 'domainProof'>,
  client: string,
  manifest: Given,
): Promise<Omit<Given, 'unproven'> & { unproven?: string[] | undefined }> {
  if (domainProof === 'off') return manifest;
  return withUnproven(manifest, await unprovenDomains(db, client, provableNames(manifest)));
}

/** The manifest with `unproven` set to exactly these domains, without the key if there are none. */
function withUnproven<Given extends ManifestInput>(
  { unproven: _, ...manifest }: Given,
  domains: readonly string[],
): Omit<Given, 'unproven'> & { unproven?: string[] } {
  return domains.length === 0 ? manifest : { ...manifest, unproven: [...domains].sort() };
}

/** The file of a live site, with one domain added to `unproven` or taken from it. Any other text is returned as it is. */
export async function rewriteProof(
  text: string | null,
  site: string,
  { domain, isProven }: { readonly domain: string; readonly isProven: boolean },
): Promise<string | null> {
  if (text === null) return null;
  const parsed = await readManifest(text, `${site}.yaml`);
  if (!parsed.ok || parsed.manifest.state === 'absent') return text;
  const { manifest } = parsed;
  const { unproven = [] } = manifest;
  const hasNames = provableNames(manifest).some((name) => isWithinDomain(name, domain));
  if (unproven.includes(domain) === (hasNames && !isProven)) return text;
  const others = unproven.filter((one) => one !== domain);
  return formatManifest(withUnproven(manifest, hasNames && !isProven ? [...others, domain] : others));
}
