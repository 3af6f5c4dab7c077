import { escapeHidden } from '../../base/text.ts';
import { policyAt } from './edits/paths.ts';

/** A site's file in a tree: a regular file `*.yaml` at the root (no link, submodule or folder). */
export interface SiteBlob {
  readonly site: string;
  readonly blob: string;
}

/** A path that has a manifest's name, but isn't a regular file `<site>.yaml` at the root. */
export interface MisplacedFile {
  readonly site: string;
  readonly path: string;
  readonly form: 'file' | 'link' | 'submodule' | 'folder';
  /** Id of the object. */
  readonly id: string;
}

export interface SiteTree {
  readonly files: readonly SiteBlob[];
  /** At most one for each site, and none for a site with a file. */
  readonly misplaced: readonly MisplacedFile[];
}

/** Entries of a whole tree, folders included. */
export const LIST_TREE = ['ls-tree', '-r', '-t', '-z'] as const;

const FORMS: Readonly<Record<string, MisplacedFile['form']>> = {
  '120000': 'link',
  '160000': 'submodule',
  '040000': 'folder',
};

/** Mode, id and path of each entry in the output of `ls-tree -z`. */
function* entriesOf(listing: Buffer): Generator<{ mode: string; id: string; path: string }> {
  for (const line of listing.toString().split('\0')) {
    const match = /^(\d{6}) [a-z]+ ([0-9a-f]{40,64})\t(.+)$/s.exec(line);
    if (match === null) continue;
    const [, mode = '', id = '', path = ''] = match;
    yield { mode, id, path };
  }
}

/** True for the mode of a regular file, executable or not. */
export const isRegular = (mode: string): boolean => mode.startsWith('100');

/** The site whose manifest belongs at this path; `null`: no manifest belongs there. */
export function siteAt(path: string): string | null {
  return /^([^/]+)\.yaml$/s.exec(path)?.[1] ?? null;
}

/**
 * The site that a path names in any form: in a folder, in upper case (`Acme.YAML`), with another ending (`acme.yml`,
 * `acme.yaml.disabled`); `null`: none. The files of clients and organisations name none.
 */
export function siteNamedBy(path: string): string | null {
  if (tenantAt(path) !== null) return null;
  const name = path.slice(path.lastIndexOf('/') + 1);
  return /^([a-z0-9][a-z0-9-]*)\.ya?ml(?![a-z0-9])/i.exec(name)?.[1]?.toLowerCase() ?? null;
}

const TENANT_FOLDERS = ['clients', 'organisations'] as const;
const TENANT =
  /^((?:clients|organisations)\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.yaml$/;

/** Management's `clients/<id>.yaml` or `organisations/<id>.yaml`: the path without its ending; any other: `null`. */
export function tenantAt(path: string): string | null {
  return TENANT.exec(path)?.[1] ?? null;
}

/** Arguments that list the policy scripts of a revision, for `policyBlobs`. */
export const listPolicies = (revision: string) => [
  ...['ls-tree', '-r', '-z', revision, '--'],
  ...['policy.js', 'clients'],
];

/** Parses the output of `ls-tree -z`. `site` is the path of a policy script. */
export function policyBlobs(listing: Buffer): SiteBlob[] {
  return blobsAt(listing, policyAt);
}

/** Arguments that list the files of clients and organisations of a revision, for `tenantBlobs`. */
export const listTenants = (revision: string) => [
  ...['ls-tree', '-r', '-z', revision, '--'],
  ...TENANT_FOLDERS,
];

/** Parses the output of `ls-tree -z`. `site` is a file's path, without its ending. */
export function tenantBlobs(listing: Buffer): SiteBlob[] {
  return blobsAt(listing, tenantAt);
}

function blobsAt(listing: Buffer, nameOf: (path: string) => string | null): SiteBlob[] {
  return [...entriesOf(listing)].flatMap(({ mode, id, path }) => {
    const name = isRegular(mode) ? nameOf(path) : null;
    return name === null ? [] : [{ site: name, blob: id }];
  });
}

/**
 * Parses the output of `ls-tree -z`. For a client's or organisation's file, `site` is its path without the
 * ending; for a policy script, its whole path.
 */
export function siteBlobs(listing: Buffer): SiteBlob[] {
  return blobsAt(listing, (path) => siteAt(path) ?? tenantAt(path) ?? policyAt(path));
}

/** Parses the output of `LIST_TREE`. */
export function siteTree(listing: Buffer): SiteTree {
  const files: SiteBlob[] = [];
  const misplaced = new Map<string, MisplacedFile>();
  for (const { mode, id, path } of entriesOf(listing)) {
    const own = isRegular(mode) ? siteAt(path) : null;
    if (own !== null) files.push({ site: own, blob: id });
    const site = siteNamedBy(path);
    if (site === null || site === own || misplaced.has(site)) continue;
    misplaced.set(site, { site, path, form: FORMS[mode] ?? 'file', id });
  }
  for (const { site } of files) misplaced.delete(site);
  return { files, misplaced: [...misplaced.values()] };
}

const FORM_NAMES = { file: 'a file', link: 'a symbolic link', submodule: 'a submodule', folder: 'a folder' };

/** What to do about a manifest that isn't where it belongs, for a person. */
export function describeMisplaced({ site, path: raw, form }: MisplacedFile): string {
  const own = `${site}.yaml`;
  const path = escapeHidden(raw);
  if (path === own) {
    return `${own} is ${FORM_NAMES[form]}: make it a regular file; to remove the site, set state: absent`;
  }
  return `${own} is missing, and ${path} has its name: move it back; to remove the site, delete ${path} too`;
}

/** `for-each-ref` format that `branchTips` parses: revisions by branch. */
export const BRANCH_FORMAT = '--format=%(objectname) %(refname:lstrip=2)';
export function branchTips(listing: Buffer): ReadonlyMap<string, string> {
  const lines = listing.toString().split('\n').filter(Boolean);
  return new Map(
    lines.map((line) => {
      const space = line.indexOf(' ');
      return [line.slice(space + 1), line.slice(0, space)];
    }),
  );
}
