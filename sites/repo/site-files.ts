import { coalesce } from '../../base/coalesce.ts';
import { pathOf } from './edits/paths.ts';
import { SitesRepoError } from './errors.ts';
import { readFiles, type SiteFile, UnreadableBlobError } from './files.ts';
import type { GitDir } from './git-dir.ts';
import {
  LIST_TREE,
  listPolicies,
  listTenants,
  policyBlobs,
  type SiteBlob,
  type SiteTree,
  siteBlobs,
  siteTree,
  tenantBlobs,
} from './listing.ts';

type Lookup = Pick<SiteFile, 'site'> & { readonly revision: string };

/** Files per `cat-file`, and paths per command line. */
const MAX_FILES = 500;

/** Reads site files of any revision. */
export class SiteFiles {
  readonly #git: GitDir;
  /** Concurrent lookups of one revision use the same git processes. */
  readonly #lookups = coalesce((lookups: readonly Lookup[]) => this.#answerLookups(lookups), {
    windowMs: 0,
    max: MAX_FILES,
  });

  constructor(git: GitDir) {
    this.#git = git;
  }

  async tree(revision: string): Promise<SiteTree> {
    return await this.#git.retryAfterRefetch(async () =>
      siteTree(await this.#git.run([...LIST_TREE, revision])),
    );
  }

  async tenants(revision: string): Promise<SiteBlob[]> {
    return await this.#git.retryAfterRefetch(async () =>
      tenantBlobs(await this.#git.run(listTenants(revision))),
    );
  }

  async policies(revision: string): Promise<SiteBlob[]> {
    return await this.#git.retryAfterRefetch(async () =>
      policyBlobs(await this.#git.run(listPolicies(revision))),
    );
  }

  async *texts(blobs: readonly SiteBlob[]): AsyncGenerator<SiteFile[]> {
    for (let start = 0; start < blobs.length; start += MAX_FILES) {
      const batch = blobs.slice(start, start + MAX_FILES);
      yield await this.#git.retryAfterRefetch(() => this.read(batch));
    }
  }

  async readSite(revision: string, site: string): Promise<SiteFile | null> {
    return await this.#lookups({ revision, site });
  }

  /**
   * The file of each site at the revision that is given for it. Skips revisions that git doesn't have, and files that a
   * revision doesn't have. Throws `SitesRepoError` if a revision has the file, but its object is missing or corrupt.
   */
  async readEach(revisions: ReadonlyMap<string, string>): Promise<SiteFile[]> {
    if (revisions.size === 0) return [];
    const lookups = [...revisions].map(([site, revision]) => ({ site, revision }));
    let isComplete = !this.#git.isMirror;
    const { blobs, unlisted } = await this.#git.retryAfterRefetch(async () => {
      const names = lookups.flatMap(({ site, revision }) => [revision, `${revision}:${site}.yaml`]);
      const found = (await this.#git.run(['cat-file', '--batch-check'], `${names.join('\n')}\n`))
        .toString()
        .split('\n');
      const isMissing = lookups.some((_, index) => !/^\S+ commit /.test(found[index * 2] ?? ''));
      if (isMissing && !isComplete) {
        isComplete = true;
        throw new SitesRepoError('the mirror lacks a revision that was applied');
      }
      const blobOf = (index: number) => /^(\S+) blob /.exec(found[index * 2 + 1] ?? '')?.[1];
      return {
        blobs: lookups.flatMap(({ site }, index) => {
          const blob = blobOf(index);
          return blob === undefined ? [] : [{ site, blob }];
        }),
        // Git has the revision: either it has no such file, or the file's object is missing.
        unlisted: lookups.filter(
          (_, index) => blobOf(index) === undefined && /^\S+ commit /.test(found[index * 2] ?? ''),
        ),
      };
    });
    const files: SiteFile[] = [];
    for (const { revision, site } of (await this.#hasAny(unlisted)) ? unlisted : []) {
      const file = await this.readSite(revision, site);
      if (file !== null) files.push(file);
    }
    for await (const batch of this.texts(blobs)) files.push(...batch);
    return files;
  }

  /** The texts of a site's file at these revisions (`<id>` or `<id>^`). Those that have no such file are left out. */
  async textsAt(site: string, revisions: readonly string[]): Promise<Map<string, string>> {
    if (revisions.length === 0) return new Map();
    return await this.#git.retryAfterRefetch(async () => {
      const names = revisions.map((revision) => `${revision}:${pathOf(site)}`);
      const found = (await this.#git.run(['cat-file', '--batch-check'], `${names.join('\n')}\n`))
        .toString()
        .split('\n');
      const blobs = revisions.flatMap((revision, index) => {
        const blob = /^(\S+) blob /.exec(found[index] ?? '')?.[1];
        return blob === undefined ? [] : [{ revision, site, blob }];
      });
      const files = await this.read(blobs);
      return new Map(blobs.map(({ revision }, index) => [revision, files[index]?.text ?? '']));
    });
  }

  /** True if one of these revisions names one of these files, whether or not its object can be read. One git process. */
  async #hasAny(lookups: readonly Lookup[]): Promise<boolean> {
    if (lookups.length === 0) return false;
    const args = ['rev-list', '--objects', '--no-walk', '--missing=print', '--stdin', '--'];
    const paths = lookups.map(({ site }) => `${site}.yaml`);
    const revisions = [...new Set(lookups.map(({ revision }) => revision))];
    const listed = await this.#git.retryAfterRefetch(() =>
      this.#git.run([...args, ...paths], `${revisions.join('\n')}\n`),
    );
    return /^\?|\.yaml$/m.test(listed.toString());
  }

  /** At most two `cat-file` for all of these. Throws `SitesRepoError` where an object is missing or corrupt. */
  async read(blobs: readonly SiteBlob[]): Promise<SiteFile[]> {
    return await readFiles((args, input) => this.#git.run(args, input), blobs).catch((cause: unknown) => {
      throw cause instanceof UnreadableBlobError ? new SitesRepoError(cause.message, { cause }) : cause;
    });
  }

  async #answerLookups(
    lookups: readonly Lookup[],
  ): Promise<readonly PromiseSettledResult<SiteFile | null>[]> {
    const byRevision = new Map<string, Promise<Map<string, SiteFile>>>();
    for (const [revision, group] of Map.groupBy(lookups, (one) => one.revision)) {
      byRevision.set(revision, this.#readSites(revision, new Set(group.map(({ site }) => site))));
    }
    return await Promise.allSettled(
      lookups.map(async ({ revision, site }) => (await byRevision.get(revision))?.get(site) ?? null),
    );
  }

  async #readSites(revision: string, sites: ReadonlySet<string>): Promise<Map<string, SiteFile>> {
    const paths = [...sites].map(pathOf);
    const files = await this.#git.retryAfterRefetch(async () =>
      this.read(siteBlobs(await this.#git.run(['ls-tree', '-z', revision, '--', ...paths]))),
    );
    return new Map(files.map((file) => [file.site, file]));
  }
}
