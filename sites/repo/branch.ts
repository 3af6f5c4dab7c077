import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { coalesce } from '../../base/coalesce.ts';
import { SitesRepoError } from './errors.ts';
import type { GitDir } from './git-dir.ts';
import { BRANCH_FORMAT, branchTips } from './listing.ts';

/** What is known of the branch without asking git. */
export interface LastRead {
  /** When it could last be read, by the monotonic clock; `null`: never. */
  readonly at: number | null;
  /** Why it could not be read since; `null`: it could. */
  readonly error: unknown;
}

/** The branch that holds the desired state. */
export class Branch {
  readonly name: string;
  readonly #git: GitDir;
  #hasExisted: boolean;
  #lastRead: LastRead | null = null;
  /** Concurrent calls use the same git processes: a hundred requests start as many as one. */
  readonly #heads = coalesce(
    async (calls: readonly undefined[]) => {
      const value = await this.#read();
      return calls.map(() => ({ status: 'fulfilled', value }) as const);
    },
    { windowMs: 0 },
  );

  constructor(git: GitDir, name: string, hasExisted: boolean) {
    this.#git = git;
    this.name = name;
    this.#hasExisted = hasExisted;
  }

  /** How the last read of the newest revision has ended. `null`: none has. */
  get lastRead(): LastRead | null {
    return this.#lastRead;
  }

  get ref(): string {
    return `refs/heads/${this.name}`;
  }

  /**
   * The newest revision, after a fetch where the repository is a mirror; `null`: there is no branch and never was one.
   * Throws `SitesRepoError` if it is gone.
   */
  async head(): Promise<string | null> {
    return await this.#heads(undefined);
  }

  async #read(): Promise<string | null> {
    try {
      if (this.#git.isMirror) await this.#git.fetch();
      const tip = await this.tip();
      if (tip === null && this.#hasExisted) {
        throw new SitesRepoError(`the branch ${this.name} of the sites repository is gone; restore it`);
      }
      this.#lastRead = { at: systemClock.now(), error: null };
      return tip;
    } catch (error) {
      this.#lastRead = { at: this.#lastRead?.at ?? null, error };
      throw error;
    }
  }

  /** The newest revision without a fetch. `null` only if git has none: a broken repository is not an empty one. */
  async tip(): Promise<string | null> {
    const tip = (await this.#tips()).get(this.name) ?? null;
    if (tip !== null) this.created();
    return tip;
  }

  /** Records that the branch has existed. Call it when the first commit was made. */
  created(): void {
    this.#hasExisted = true;
  }

  /**
   * Throws if the branch is missing, unless the repository is empty and the branch never existed: a first commit would
   * replace a branch that was lost, and with it all sites.
   */
  async assertMayCreate(): Promise<void> {
    const tips = await this.#tips();
    if (tips.has(this.name) || (!this.#hasExisted && tips.size === 0)) return;
    throw new SitesRepoError(`the sites repository has no branch ${this.name}, or no longer has it`);
  }

  async #tips(): Promise<ReadonlyMap<string, string>> {
    const list = async () => branchTips(await this.#git.run(['for-each-ref', BRANCH_FORMAT, 'refs/heads']));
    const tips = await list();
    const looseRef = join(this.#git.path, 'refs', 'heads', this.name);
    if (tips.has(this.name) || !existsSync(looseRef)) return tips;
    // The file exists: either it was created since the listing, or git skips it because it is damaged (empty, say).
    const again = await list();
    if (again.has(this.name) || !existsSync(looseRef)) return again;
    throw new SitesRepoError(`the branch ${this.name} of the sites repository can't be read`);
  }
}
