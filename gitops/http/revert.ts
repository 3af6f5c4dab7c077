import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import { ProvisionerProblem } from './errors.ts';
import { currentManifest, demandSecrets, removeSite } from './site-edits.ts';

interface Revert {
  /** The commit that is reverted. */
  readonly reverted: string;
  edit(current: string | null): Promise<string>;
}

/**
 * The edit that restores a site's file as it was before a commit; default: the newest commit that changed it. A merge
 * is reverted to its first parent. Later changes of the file are reverted too. Reverting a removal brings the site
 * back; reverting its creation writes a tombstone. Throws `unknown_site` or `unknown_ref`; the edit throws
 * `invalid_manifest`, `site_protected` or `removal_unconfirmed`.
 */
export async function revertOf(
  repo: SitesRepo,
  site: string,
  {
    revision,
    removal,
    host,
    keyFile,
  }: {
    readonly revision: string | undefined;
    readonly removal: boolean;
    readonly host: string;
    /** The identities of the host. */
    readonly keyFile: string;
  },
): Promise<Revert> {
  const from = revision === undefined ? await repo.head() : await repo.resolve(revision);
  if (from === null) throw new ProvisionerProblem('unknown_ref');
  // A merge counts as one change of the branch: its difference from its first parent.
  const [newest] = (await repo.versions(site, { revision: from, branchOnly: true })).keys();
  // The revision may be older than the site.
  const isOlder = newest === undefined && revision !== undefined && (await repo.history(site, 1)).length > 0;
  if (newest === undefined && !isOlder)
    throw new ProvisionerProblem('unknown_site', { detail: `no commit ever touched ${site}.yaml` });
  if (newest === undefined || (revision !== undefined && newest !== from)) {
    throw new ProvisionerProblem('unknown_ref', {
      detail: `${from.slice(0, 12)} did not touch ${site}.yaml`,
    });
  }
  const parent = await repo.resolve(`${newest}^`);
  const before = parent === null ? null : await repo.readSite(parent, site);
  const wasCreated = before === null && (parent === null || !(await hasOtherForm(repo, site, parent)));
  return {
    reverted: newest,
    async edit(current) {
      if (wasCreated) {
        const removed = await removeSite(site, current);
        if (!removal && removed !== current) throw await unconfirmed(repo, site, newest);
        return removed;
      }
      // Throws where the old text is invalid or can't be decrypted: a site is not reverted to a manifest that can't be
      // applied.
      const text = before?.text ?? '';
      const wanted = await currentManifest(site, text);
      if (wanted.state === 'present' && wanted.host === host) await demandSecrets(keyFile, wanted);
      if (wanted.state === 'present' || current === null) return text;
      if (!removal && (await removeSite(site, current)) !== current)
        throw await unconfirmed(repo, site, newest);
      return await tombstone(site, text, current);
    },
  };
}

async function unconfirmed(repo: SitesRepo, site: string, revision: string): Promise<ProvisionerProblem> {
  const [entry] = await repo.history(site, 1, revision);
  const subject = entry?.revision === revision ? ` (${entry.subject})` : '';
  return new ProvisionerProblem('removal_unconfirmed', {
    detail: `before ${revision.slice(0, 8)}${subject} there was no site ${site}, so this revert removes it from its host, the edge and DNS`,
  });
}

/**
 * True if the site's file was moved away or was, for example, a link. A revert to that state is refused.
 */
async function hasOtherForm(repo: SitesRepo, site: string, revision: string): Promise<boolean> {
  const [newest] = (await repo.versions(site, { revision })).values();
  return newest === '';
}

/** The old tombstone. Throws where the site, as it is now, may not be removed. */
async function tombstone(site: string, text: string, current: string): Promise<string> {
  await removeSite(site, current);
  return text;
}
