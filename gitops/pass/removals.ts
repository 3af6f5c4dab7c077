import { limit } from '../base/limit.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import { parseManifest } from '../manifest/load.ts';
import { SitesRepoError } from '../sites-repo/errors.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import type { Removal } from './guards.ts';

/** Each read starts a git process. */
const MAX_READS = 8;

/**
 * Finds out why sites with objects on this host are missing from the desired state. The removal is confirmed if the file
 * names another host, or if a commit of this branch deleted it (docs/reconciler.md, rule 2).
 */
export async function findRemovals(
  sites: Iterable<string>,
  desired: Pick<DesiredState, 'revision' | 'onOtherHosts'>,
  repo: Pick<SitesRepo, 'history' | 'readSite'>,
): Promise<Map<string, Removal>> {
  const limited = limit(MAX_READS);
  const found = [...sites].map((site) =>
    limited(async () => [site, await findRemoval(site, desired, repo)] as const),
  );
  return new Map(await Promise.all(found));
}

async function findRemoval(
  site: string,
  desired: Pick<DesiredState, 'revision' | 'onOtherHosts'>,
  repo: Pick<SitesRepo, 'history' | 'readSite'>,
): Promise<Removal> {
  const moved = desired.onOtherHosts.get(site);
  if (moved !== undefined) {
    const { host, state, protect } = moved;
    return { confirmed: true, protect, ...(state === 'present' ? { to: host } : {}) };
  }
  const [removal] = await repo.history(site, 1, desired.revision).catch(unlessUnreadable);
  if (removal === undefined) return { confirmed: false, protect: false };
  const before = await repo.readSite(`${removal.revision}^`, site).catch(() => null);
  const last = before === null ? null : parseManifest(before.text, before.path);
  const protect = last?.ok === true && last.manifest.protect && last.manifest.state === 'present';
  return { confirmed: true, protect };
}

/** History that can't be read confirms nothing. Other sites are still reconciled. */
function unlessUnreadable(error: unknown): [] {
  if (error instanceof SitesRepoError) return [];
  throw error;
}
