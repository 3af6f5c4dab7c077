import type { Absence } from '../../sites/repo/absences.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { Removal } from './guards.ts';

/**
 * Finds out why sites with objects on this host are missing from the desired state. The removal is confirmed if the file
 * names another host, or if a commit of this branch deleted it and git has it in no other form (docs/reconciler.md,
 * rule 2). The last readable version of the file decides whether the site is protected.
 */
export async function findRemovals(
  sites: Iterable<string>,
  { revision, onOtherHosts }: Pick<DesiredState, 'revision' | 'onOtherHosts'>,
  repo: Pick<SitesRepo, 'absences'>,
): Promise<Map<string, Removal>> {
  const all = [...sites];
  const missing = all.filter((site) => !onOtherHosts.has(site));
  const absences = await readAbsences(missing, revision, repo);
  return new Map(
    all.map((site): [string, Removal] => {
      const moved = onOtherHosts.get(site);
      if (moved !== undefined) {
        const { host, state, protect } = moved;
        return [site, { confirmed: true, protect, ...(state === 'present' ? { to: host } : {}) }];
      }
      if ('unreadable' in absences) return [site, { confirmed: false, protect: false, ...absences }];
      const { isProven = false, detail = '', last = null } = absences.found.get(site) ?? {};
      const protect = last?.protect === true && last.state === 'present';
      return [site, { confirmed: isProven, protect, ...(isProven ? {} : { detail }) }];
    }),
  );
}

/** While a history can't be read, no missing site is removed: it may be protected. Other sites are reconciled. */
async function readAbsences(
  missing: readonly string[],
  revision: string,
  repo: Pick<SitesRepo, 'absences'>,
): Promise<{ readonly found: ReadonlyMap<string, Absence> } | { readonly unreadable: string }> {
  try {
    return { found: missing.length === 0 ? new Map() : await repo.absences(missing, revision) };
  } catch (error) {
    if (!(error instanceof SitesRepoError)) throw error;
    return { unreadable: error.message };
  }
}
