import type { Manifest } from '../../sites/manifest/schema.ts';
import { ciphertextOf, ciphertexts, registrableDomains } from '../desired/client-domains.ts';
import { clientsOf, holdersOf } from '../desired/desired-state.ts';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';
import { shownQuotas } from './quotas.ts';

/** Throws `name_taken` if another site of this host already has one of `names`: the edit would only stall the site. */
export async function refuseTaken(
  { repo, reader }: DaemonDeps,
  site: string,
  names: readonly string[],
): Promise<void> {
  const head = await repo.head();
  if (head === null) return;
  const holders = holdersOf(await reader.read(head));
  for (const name of names) {
    const holder = holders.get(name);
    if (holder !== undefined && holder !== site) {
      throw new ProvisionerProblem('name_taken', { detail: `${name} is held by the site ${holder}` });
    }
  }
}

/**
 * Throws `name_taken` if another client has a registrable domain of the manifest, and the manifest's client doesn't.
 */
export async function refuseForeignDomains({ repo, reader }: DaemonDeps, manifest: Manifest): Promise<void> {
  const head = await repo.head();
  if (head === null) return;
  const clients = clientsOf(await reader.read(head));
  for (const domain of registrableDomains(manifest)) {
    const holders = clients.get(domain);
    if (holders !== undefined && !holders.has(manifest.client)) {
      const sites = [...holders.values()].join(', ');
      throw new ProvisionerProblem('name_taken', {
        detail: `domain ${domain} belongs to the client of the site ${sites}`,
      });
    }
  }
}

/** Throws `quota_reached` where a new site doesn't fit. A site that exists already needs no more room. */
export function refuseWithoutRoom(deps: DaemonDeps, site: string): void {
  const status = deps.loop.status(site);
  if (status !== null && status.reason !== 'Removed') return;
  const full = shownQuotas(deps).find(({ state }) => state === 'quota_reached');
  if (full === undefined) return;
  throw new ProvisionerProblem('quota_reached', { detail: `${full.message}. ${full.fix}` });
}

/** Throws `quota_reached` while the site itself waits for room: it can't be reached under a further domain. */
export function refuseStuck({ loop }: DaemonDeps, site: string): void {
  const status = loop.status(site);
  if (status?.reason === 'QuotaReached') {
    throw new ProvisionerProblem('quota_reached', { detail: status.message });
  }
}

/** Whether the newest manifest of a site is applied: nothing of it is disputed. */
export async function isInForce({ repo, reader }: DaemonDeps, site: string): Promise<boolean> {
  const head = await repo.head();
  if (head === null) return false;
  const known = (await reader.read(head)).sites.get(site);
  return known !== undefined && known.manifest !== null && known.stalled === null;
}

/**
 * Which secrets of other containers a new site may have: those in force in its own client's sites, and unbound ones of
 * no site. Else a committer could copy another client's, and have a clone of that site bind them. The client is the
 * request's: git's may be forged.
 */
export async function bindable(
  { repo, reader }: DaemonDeps,
  { client }: Pick<Manifest, 'client'>,
): Promise<(armored: string, holder: string | null) => boolean> {
  const head = await repo.head();
  const sites = head === null ? [] : [...(await reader.read(head)).sites.values()];
  const live = sites.flatMap(({ manifest }) => (manifest?.state === 'present' ? [manifest] : []));
  const own = new Set(live.filter((one) => one.client === client).flatMap((one) => [...ciphertexts(one)]));
  const others = new Set(live.filter((one) => one.client !== client).flatMap((one) => [...ciphertexts(one)]));
  return (armored, holder) => {
    const text = ciphertextOf(armored);
    return own.has(text) || (holder === null && !others.has(text));
  };
}
