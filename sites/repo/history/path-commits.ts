import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { readJsonFile } from '../../../base/json-file.ts';
import { limit } from '../../../base/limit.ts';

/** The file is written again after this many commits. What it lacks is read from git at the next start. */
const SAVED_EVERY = 1_000;
/** A commit's full id, and those of its parents. */
const HEADER = /^([0-9a-f]{40,64})((?: [0-9a-f]{40,64})*)$/;

const saved = z.object({
  tip: z.string(),
  isPartial: z.boolean(),
  commits: z.record(z.string(), z.array(z.string())),
});

interface Git {
  run(args: readonly string[], input?: string, options?: { readonly silenceMs?: number }): Promise<Buffer>;
  isAncestor(older: string, newer: string): Promise<boolean>;
}

/**
 * An index in memory of the commits of a branch that touched each path. Without it, a search for one path's commits
 * passes through all commits of the branch, even with git's own index. It covers only the commits since the last merge,
 * because, for merged branches, git's choice of a path's commits depends on all commits together. A copy is kept in
 * a file, because reading a long history takes minutes.
 */
export class PathCommits {
  readonly #git: Git;
  readonly #file: string;
  readonly #mutex = limit(1);
  #commits = new Map<string, string[]>();
  /** The newest commit that is covered; `null`: none yet. */
  #tip: string | null = null;
  /** There are older commits than those that are covered. */
  #isPartial = false;
  #unsaved = 0;

  constructor(git: Git, file: string) {
    this.#git = git;
    this.#file = file;
  }

  /** Whether any commit is covered. */
  get isBuilt(): boolean {
    return this.#tip !== null;
  }

  /** Covers the commits up to `revision`. `silenceMs`: how long git may work without output. Throws git's errors. */
  async update(revision: string, silenceMs?: number): Promise<void> {
    await this.#mutex(async () => {
      if (this.#tip === null) await this.#load();
      if (this.#tip === revision) return;
      // The branch was rewritten, or the file is of another repository.
      if (this.#tip !== null && !(await this.#git.isAncestor(this.#tip, revision))) this.#reset();
      const range = this.#tip === null ? [revision] : [revision, `^${this.#tip}`];
      const format = ['--format=%x00%H %P%x00', '--name-only', '--no-renames', '-z'];
      const args = ['-c', 'log.showRoot=true', 'log', '--topo-order', '--reverse', ...format, ...range, '--'];
      const output = await this.#git.run(args, undefined, silenceMs === undefined ? {} : { silenceMs });
      this.#add(output.toString());
      this.#tip = revision;
      if (this.#unsaved >= SAVED_EVERY) await this.#save();
    });
  }

  /** Covers the commits up to a newer revision, if it has been built and the branch was not rewritten. */
  async advance(revision: string): Promise<void> {
    if (this.#tip === null || this.#tip === revision) return;
    if (await this.#git.isAncestor(this.#tip, revision)) await this.update(revision);
  }

  /**
   * The newest commits that touched a path, newest first, from `revision` back. `revision` must be the newest covered
   * commit, or one that touched the path. `null`: not known.
   */
  find(path: string, count: number, revision: string): string[] | null {
    const commits = this.#commits.get(path) ?? [];
    const end = revision === this.#tip ? commits.length : commits.lastIndexOf(revision) + 1;
    if (this.#tip === null || (end === 0 && revision !== this.#tip)) return null;
    const found = commits.slice(Math.max(0, end - count), end).reverse();
    return found.length < count && this.#isPartial ? null : found;
  }

  /** Each commit is an empty part, its header, another empty part, and the paths. No path is empty. */
  #add(output: string): void {
    const parts = output.split('\0');
    for (let start = 0; start + 3 < parts.length; ) {
      const [, revision = '', parents = ''] = HEADER.exec((parts[start + 1] ?? '').trim()) ?? [];
      if (revision === '') throw new Error('git answered in another format than requested');
      if (parents.trim().includes(' ')) {
        this.#commits = new Map();
        this.#isPartial = true;
      }
      let next = start + 3;
      for (; next < parts.length && parts[next] !== ''; next += 1) {
        // Git writes a line break before the first path.
        const path = (parts[next] ?? '').slice(next === start + 3 ? 1 : 0);
        const known = this.#commits.get(path);
        if (known === undefined) this.#commits.set(path, [revision]);
        else known.push(revision);
      }
      this.#unsaved += 1;
      start = next;
    }
  }

  #reset(): void {
    this.#commits = new Map();
    this.#tip = null;
    this.#isPartial = false;
  }

  /** If the file is missing or damaged, the index is built from git again. */
  async #load(): Promise<void> {
    const read = await readJsonFile(this.#file, saved).catch(() => null);
    if (read === null) return;
    this.#commits = new Map(Object.entries(read.commits));
    this.#tip = read.tip;
    this.#isPartial = read.isPartial;
  }

  async #save(): Promise<void> {
    const commits = Object.fromEntries(this.#commits);
    await mkdir(dirname(this.#file), { recursive: true });
    await writeDurably(this.#file, JSON.stringify({ tip: this.#tip, isPartial: this.#isPartial, commits }));
    this.#unsaved = 0;
  }
}
