import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import { ProvisionerProblem } from './errors.ts';
import { currentManifest, removeSite } from './site-edits.ts';

interface Revert {
  /** The commit that is reverted. */
  readonly reverted: string;
  edit(current: string | null): Promise<string>;
}

/**
 * The edit that restores a site's file as it was before a commit (default: the newest that changed it). Later changes of
 * the file are reverted too. Reverting a removal brings the site back; reverting its creation writes a tombstone. Throws
 * `unknown_site` or `unknown_ref`; the edit throws `invalid_manifest` or `site_protected`.
 */
export async function revertOf(repo: SitesRepo, site: string, revision?: string): Promise<Revert> {
  const from = revision === undefined ? await repo.head() : await repo.resolve(revision);
  if (from === null) throw new ProvisionerProblem('unknown_ref');
  const [commit] = await repo.history(site, 1, from);
  if (commit === undefined)
    throw new ProvisionerProblem('unknown_site', { detail: `no commit ever touched ${site}.yaml` });
  if (revision !== undefined && commit.revision !== from) {
    throw new ProvisionerProblem('unknown_ref', {
      detail: `${from.slice(0, 12)} did not touch ${site}.yaml`,
    });
  }
  const parent = await repo.resolve(`${commit.revision}^`);
  const before = parent === null ? null : await repo.readSite(parent, site);
  const wasCreated = before === null && (parent === null || !(await hasOtherForm(repo, site, parent)));
  return {
    reverted: commit.revision,
    async edit(current) {
      if (wasCreated) return await removeSite(site, current);
      // Throws where the old text is invalid: a site is not reverted to a manifest that can't be applied.
      const text = before?.text ?? '';
      const wanted = await currentManifest(site, text);
      return wanted.state === 'absent' && current !== null ? await tombstone(site, text, current) : text;
    },
  };
}

/** Whether the site's file was a link, say, or moved away: bringing that back is no removal. */
async function hasOtherForm(repo: SitesRepo, site: string, revision: string): Promise<boolean> {
  const [newest] = (await repo.versions(site, { revision })).values();
  return newest === '';
}

/** The old tombstone. Throws where the site, as it is now, may not be removed. */
async function tombstone(site: string, text: string, current: string): Promise<string> {
  await removeSite(site, current);
  return text;
}
