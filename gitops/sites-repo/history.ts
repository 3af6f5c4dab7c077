import { GitError } from '../clients/git.ts';
import { SitesRepoError } from './errors.ts';
import type { GitDir } from './git-dir.ts';
import {
  type HistoryEntry,
  LOG_FORMAT,
  parseLog,
  parseVersions,
  type VersionRange,
  versionsLog,
} from './log.ts';
import type { SiteFiles } from './site-files.ts';

/** Reads the history of site files. */
export class History {
  readonly #git: GitDir;
  readonly #files: SiteFiles;

  constructor(git: GitDir, files: SiteFiles) {
    this.#git = git;
    this.#files = files;
  }

  async commits(site: string, limit: number, revision: string): Promise<HistoryEntry[]> {
    const args = ['log', `-${limit}`, LOG_FORMAT, revision, '--', `${site}.yaml`];
    return parseLog((await this.#git.run(args)).toString());
  }

  async versions(site: string, range: VersionRange): Promise<Map<string, string | null>> {
    return await this.#git.retryAfterRefetch(async () => {
      const found = parseVersions((await this.#git.run(versionsLog(site, range))).toString());
      const files = await this.#files.read(found.flatMap(({ blob }) => (blob ? [{ site, blob }] : [])));
      const texts = new Map(files.map(({ blob, text }) => [blob, text]));
      return new Map(found.map(({ revision, blob }) => [revision, texts.get(blob ?? '') ?? null]));
    });
  }

  async index(): Promise<void> {
    await this.#git.run([
      'commit-graph',
      'write',
      '--reachable',
      '--changed-paths',
      '--split',
      '--no-progress',
    ]);
  }

  async depth(revision: string): Promise<number> {
    return Number((await this.#git.run(['rev-list', '--count', revision])).toString());
  }

  async isAncestor(older: string, newer: string): Promise<boolean> {
    try {
      // The merge base of a commit and its ancestor is the ancestor.
      return (await this.#git.run(['merge-base', older, newer])).toString().trim() === older;
    } catch (error) {
      const cause = error instanceof SitesRepoError ? error.cause : error;
      // 1: nothing in common. 128: the repository no longer has the older commit.
      if (cause instanceof GitError && (cause.exitCode === 1 || cause.exitCode === 128)) return false;
      throw error;
    }
  }
}
