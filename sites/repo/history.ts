import { pathOf } from './edits/paths.ts';
import { SitesRepoError } from './errors.ts';
import { EVENT_FORMAT, type FileEvent, parseEvents } from './file-events.ts';
import { GitError } from './git/git.ts';
import { type GitDir, WHOLE_REPO } from './git-dir.ts';
import {
  COMMITS_LOG,
  type CommitEntry,
  type HistoryEntry,
  LOG_FORMAT,
  parseCommits,
  parseLog,
  type VersionRange,
  versionsLog,
} from './log.ts';
import type { SiteFiles } from './site-files.ts';

/** Reads the history of site files. */
export class History {
  readonly #git: GitDir;
  readonly #files: SiteFiles;
  /** The revision that was counted last. */
  #counted: { readonly revision: string; readonly ordinal: number } | null = null;

  constructor(git: GitDir, files: SiteFiles) {
    this.#git = git;
    this.#files = files;
  }

  async commits(site: string, limit: number, revision: string): Promise<HistoryEntry[]> {
    const args = ['log', `-${limit}`, LOG_FORMAT, revision, '--', pathOf(site)];
    return parseLog((await this.#git.run(args)).toString());
  }

  async all(limit: number, revision: string, skip: number): Promise<CommitEntry[]> {
    const args = ['log', `-${limit}`, `--skip=${skip}`, ...COMMITS_LOG, '--end-of-options', revision, '--'];
    return parseCommits((await this.#git.run(args)).toString());
  }

  async at(revisions: readonly string[]): Promise<CommitEntry[]> {
    if (revisions.length === 0) return [];
    const args = ['log', ...COMMITS_LOG, '--no-walk=unsorted', '--ignore-missing', '--stdin'];
    return parseCommits((await this.#git.run(args, `${revisions.join('\n')}\n`)).toString());
  }

  /** How many commits lead to a revision. Counts only the difference from the revision that was counted last. */
  async ordinal(revision: string): Promise<number> {
    const last = this.#counted;
    if (last?.revision === revision) return last.ordinal;
    const counted = async (args: string[]) => {
      const text = await this.#git.run(['rev-list', '--count', ...args, '--']);
      return text.toString().split('\t').map(Number);
    };
    const whole = async () => (await counted([revision]))[0] ?? 0;
    const ordinal = await (last === null
      ? whole()
      : counted(['--left-right', `${last.revision}...${revision}`]).then(
          ([gone = 0, added = 0]) => last.ordinal - gone + added,
          // A rewritten history may have lost that revision.
          whole,
        ));
    this.#counted = { revision, ordinal };
    return ordinal;
  }

  /**
   * The file after each commit, by revision. If the path then has anything but a regular file, or if the file was moved
   * away, the text is empty, which is an invalid version. `null`: the commit deleted the file.
   */
  async versions(site: string, range: VersionRange): Promise<Map<string, string | null>> {
    return await this.#git.retryAfterRefetch(async () => {
      const events = await this.#events(site, versionsLog(site, range));
      // Only the other files of the commit show where a file was moved.
      const gone = events.filter((event) => event.gone !== null).map(({ revision }) => revision);
      const moved = new Set(gone.length === 0 ? [] : await this.#moves(site, gone));
      const files = await this.#files.read(events.flatMap(({ blob }) => (blob ? [{ site, blob }] : [])));
      const texts = new Map(files.map(({ blob, text }) => [blob, text]));
      return new Map(
        events.map(({ revision, blob, gone: disappeared }) => [
          revision,
          disappeared === null || moved.has(revision) ? (texts.get(blob ?? '') ?? '') : null,
        ]),
      );
    });
  }

  async #events(site: string, args: readonly string[], input?: string): Promise<readonly FileEvent[]> {
    return parseEvents(await this.#git.run(args, input), new Set([site])).events.get(site) ?? [];
  }

  /** Returns those of these commits that moved the site's file. */
  async #moves(site: string, revisions: readonly string[]): Promise<string[]> {
    const args = ['log', ...EVENT_FORMAT, '--no-walk=unsorted', '--stdin'];
    const events = await this.#events(site, args, `${revisions.join('\n')}\n`);
    return events.filter(({ gone }) => gone?.movedTo != null).map(({ revision }) => revision);
  }

  async index(): Promise<void> {
    const args = ['commit-graph', 'write', '--reachable', '--changed-paths', '--split', '--no-progress'];
    await this.#git.run(args, undefined, WHOLE_REPO);
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
