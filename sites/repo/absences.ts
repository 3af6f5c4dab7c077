import { escapeHidden } from '../../base/text.ts';
import type { Manifest } from '../manifest/schema.ts';
import { SitesRepoError } from './errors.ts';
import type { FileEvent } from './file-events.ts';
import { GitError } from './git/git.ts';
import { findLastReadable } from './last-readable.ts';
import { describeMisplaced, type MisplacedFile, siteAt, tenantAt } from './listing.ts';
import type { WalkParts } from './version-walk.ts';

/** Why a revision has no file of a site. */
export interface Absence {
  /**
   * True if a commit of the branch removed the file, and git has it in no other form. Only that counts as a removal.
   */
  readonly isProven: boolean;
  /** Why the removal of the file is not proven, for people; empty if it is. */
  readonly detail: string;
  /** The last readable version of the file; `null`: none was found. */
  readonly last: Manifest | null;
}

/** Finds out why a revision has no file of these sites. Throws `SitesRepoError`. */
export async function findAbsences(
  sites: readonly string[],
  revision: string,
  parts: WalkParts,
): Promise<Map<string, Absence>> {
  if (sites.length === 0) return new Map();
  const [found, { misplaced }, kept] = await Promise.all([
    findLastReadable(sites, { revision }, parts),
    parts.files.tree(revision),
    readKeptTexts(revision, parts),
  ]);
  const forms = new Map(misplaced.map((one) => [one.site, one]));
  return new Map(
    sites.map((site) => {
      const { manifest = null, blob = null, gone = null } = found.get(site) ?? {};
      const keptAs = (blob === null ? undefined : kept.ofBlob(blob)) ?? kept.ofSite(site);
      const detail = doubt(site, gone, { form: forms.get(site), keptAs });
      return [site, { isProven: detail === '', detail, last: manifest }];
    }),
  );
}

/** Why it isn't certain that the file was removed on purpose; empty: it is certain. */
function doubt(
  site: string,
  event: FileEvent | null,
  { form, keptAs }: { readonly form: MisplacedFile | undefined; readonly keptAs: string | undefined },
): string {
  if (form !== undefined) return describeMisplaced(form);
  if (event?.gone == null) return `no commit of this branch removed ${site}`;
  const { movedTo, hiddenBy } = event.gone;
  const commit = `the commit ${event.revision.slice(0, 8)}`;
  // `keptAs` may differ from `movedTo`: after further renames, or if a link or folder had replaced the file before.
  if (keptAs !== undefined) {
    return keptAs === movedTo
      ? `${commit} renamed ${site}.yaml to ${escapeHidden(keptAs)}`
      : `${commit} removed ${site}.yaml, and git still has its text in ${escapeHidden(keptAs)}: to remove the site, delete that file too`;
  }
  if (hiddenBy !== null && movedTo === null) {
    return `${commit} removed ${site}.yaml and added ${escapeHidden(hiddenBy)}, whose content isn't read`;
  }
  return '';
}

/**
 * What names a site in a manifest, in block or flow style, as an extended regular expression. `[[:space:]]` would include
 * line breaks: git would read a run of empty lines once for each of its lines, 600 KB for over a minute.
 */
const NAMED = `(^|[{,])[[:blank:]]*["']?site["']?[[:blank:]]*:[[:blank:]]*["']?[a-z0-9][a-z0-9-]*`;

/** Finds the text of a removed site in the files that a revision still has. */
interface KeptTexts {
  /** The path at which the revision has this blob. */
  ofBlob(blob: string): string | undefined;
  /** The path of a file whose text names this site, and which is no other site's own manifest. */
  ofSite(site: string): string | undefined;
}

/** Reads every file of a revision, of any size. Throws `SitesRepoError`. */
async function readKeptTexts(revision: string, { git }: WalkParts): Promise<KeptTexts> {
  const [listing, matches] = await Promise.all([
    git.run(['ls-tree', '-r', '-z', revision]),
    git.run(['grep', '-z', '-o', '-a', '-E', '-e', NAMED, revision]).catch(noMatch),
  ]);
  const pathOf = new Map<string, string>();
  for (const line of listing.toString().split('\0')) {
    const [, blob = '', path = ''] = /^\d{6} blob (\w+)\t(.+)$/s.exec(line) ?? [];
    if (blob !== '') pathOf.set(blob, path);
  }
  const named = new Map<string, string>();
  for (const [path, sites] of sitesByPath(matches.toString(), revision)) {
    // A site's own manifest and the files of clients and organisations don't count: otherwise a client could keep
    // another client's removed site by writing the name of that site into a value.
    const own = siteAt(path);
    if ((own !== null && sites.has(own)) || tenantAt(path) !== null) continue;
    for (const site of sites) named.set(site, path);
  }
  return { ofBlob: (blob) => pathOf.get(blob), ofSite: (site) => named.get(site) };
}

/** By path, the sites that `git grep -z -o` found. Its output: `<revision>:<path>`, NUL, the match, a line break. */
function sitesByPath(matches: string, revision: string): ReadonlyMap<string, ReadonlySet<string>> {
  const sites = new Map<string, Set<string>>();
  for (const match of matches.matchAll(/([^\0]+)\0[^\0\n]*?([a-z0-9][a-z0-9-]*)\n/g)) {
    const [, file = '', site = ''] = match;
    const path = file.slice(revision.length + 1);
    sites.set(path, (sites.get(path) ?? new Set()).add(site));
  }
  return sites;
}

/** `git grep` exits with 1 where nothing matches. */
function noMatch(error: unknown): Buffer {
  if (error instanceof SitesRepoError && error.cause instanceof GitError && error.cause.exitCode === 1) {
    return Buffer.alloc(0);
  }
  throw error;
}
