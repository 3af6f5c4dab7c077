import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import { ProblemError } from './errors.ts';
import { currentManifest, removeSite } from './site-edits.ts';

export interface Revert {
  /** The commit that is undone. */
  readonly reverted: string;
  edit(current: string | null): string;
}

/**
 * The edit that makes a site's file what it was before a commit (default: the newest that touched it); what later
 * commits did to this file is undone with it. Undoing a removal brings the site back, undoing its creation puts a
 * tombstone. Throws `unknown_site` or `unknown_ref`; the edit throws `invalid_manifest` or `site_protected`.
 */
export async function revertOf(repo: SitesRepo, site: string, revision?: string): Promise<Revert> {
  const from = revision === undefined ? await repo.head() : await repo.resolve(revision);
  if (from === null) throw new ProblemError('unknown_ref');
  const [commit] = await repo.history(site, 1, from);
  if (commit === undefined) throw new ProblemError('unknown_site', `no commit ever touched ${site}.yaml`);
  if (revision !== undefined && commit.revision !== from) {
    throw new ProblemError('unknown_ref', `${from.slice(0, 12)} did not touch ${site}.yaml`);
  }
  const parent = await repo.resolve(`${commit.revision}^`);
  const before = parent === null ? null : await repo.readSite(parent, site);
  return {
    reverted: commit.revision,
    edit(current) {
      if (before === null) return removeSite(site, current);
      // Somebody will want to undo a revert to something broken, too: it is refused instead.
      const wanted = currentManifest(site, before.text);
      return wanted.state === 'absent' && current !== null
        ? tombstone(site, before.text, current)
        : before.text;
    },
  };
}

/** The old tombstone, where the site as it is now may be removed at all. */
function tombstone(site: string, text: string, current: string): string {
  removeSite(site, current);
  return text;
}
