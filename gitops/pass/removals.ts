import type { DesiredState } from '../desired/desired-state.ts';
import { parseManifest } from '../manifest/load.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import type { Removal } from './guards.ts';

/** Each question starts a git process. */
const AT_ONCE = 8;

/**
 * What git says of sites that have things here but no entry any more. Absence is confirmed where the file names
 * another host, or where a commit of this very history took it out; a branch that never had it confirms nothing.
 */
export async function findRemovals(
  sites: Iterable<string>,
  desired: DesiredState,
  repo: SitesRepo,
): Promise<Map<string, Removal>> {
  const found = new Map<string, Removal>();
  const queue = [...sites].values();
  const reader = async () => {
    for (const site of queue) found.set(site, await findRemoval(site, desired, repo));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, reader));
  return found;
}

async function findRemoval(site: string, desired: DesiredState, repo: SitesRepo): Promise<Removal> {
  const elsewhere = desired.elsewhere.get(site);
  if (elsewhere !== undefined) {
    const { host, state, protect } = elsewhere;
    return { confirmed: true, protect, ...(state === 'present' ? { to: host } : {}) };
  }
  const [removal] = await repo.history(site, 1, desired.revision);
  if (removal === undefined) return { confirmed: false, protect: false };
  const before = await repo.readSite(`${removal.revision}^`, site).catch(() => null);
  const last = before === null ? null : parseManifest(before.text, before.path);
  const protect = last?.ok === true && last.manifest.protect && last.manifest.state === 'present';
  return { confirmed: true, protect };
}
