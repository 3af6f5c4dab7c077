import type { Clock } from '../../base/clock.ts';
import { coalesce } from '../../base/coalesce.ts';
import type { Branch } from './branch.ts';
import { type Committed, foldEdits, type SiteEdit } from './edits/commits.ts';
import type { FileCommit } from './edits/fast-import.ts';
import { CommitRefusedError, refusalOf, SitesRepoError } from './errors.ts';
import type { GitDir } from './git-dir.ts';
import type { History } from './history.ts';
import { makeCommits } from './new-commits.ts';
import type { SiteFiles } from './site-files.ts';

/** The ref of new commits until the remote accepts them. Before that, they must not be on the local branch. */
const UNPUSHED = 'refs/tagyard/unpushed';
const MAX_LOST_RACES = 20;
/** Edits per push. */
const MAX_EDITS = 500;

interface CommitterDeps {
  readonly git: GitDir;
  readonly branch: Branch;
  readonly files: SiteFiles;
  readonly history: History;
  readonly clock: Pick<Clock, 'date'>;
  readonly onNotice: (message: string) => void;
}

/** Writes commits by compare-and-swap on the branch (docs/reconciler.md, rule 13). */
export class Committer {
  readonly #deps: CommitterDeps;
  /** Edits that arrive during a push are pushed together after it. */
  readonly #edits = coalesce((edits: readonly SiteEdit[]) => this.#commitAll(edits), {
    windowMs: 0,
    max: MAX_EDITS,
  });

  constructor(deps: CommitterDeps) {
    this.#deps = deps;
  }

  async commit(edit: SiteEdit): Promise<Committed> {
    return await this.#edits(edit);
  }

  async #commitAll(edits: readonly SiteEdit[]): Promise<readonly PromiseSettledResult<Committed>[]> {
    const { branch, history } = this.#deps;
    for (let lost = 0; lost < MAX_LOST_RACES; lost += 1) {
      const parent = await branch.head();
      if (parent === null) await branch.assertMayCreate();
      const { commits, outcomes } = await foldEdits(edits, parent, await this.#textsOf(parent, edits));
      if (commits.length === 0) return outcomes([]);
      let revisions: readonly string[] = [];
      try {
        revisions = await this.#make(parent, commits);
        await this.#push(revisions.at(-1));
        branch.created();
        return outcomes(revisions);
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal !== null) return await this.#refused(edits, refusal, error);
        if (parent === null && (await this.#deps.git.adoptFormat(error))) continue;
        // Either another writer pushed first, or this push succeeded but its answer was lost. The branch shows which.
        const head = await branch.head();
        if (head === parent) throw error;
        const last = revisions.at(-1);
        if (head !== null && last !== undefined && (await history.isAncestor(last, head)))
          return outcomes(revisions);
      }
    }
    const sites = edits.map(({ site }) => site).join(', ');
    throw new SitesRepoError(
      `the sites repository changed ${MAX_LOST_RACES} times during the commit of ${sites}; try again`,
    );
  }

  /** The server refuses a push as a whole, and may only mean one of its edits. */
  async #refused(
    edits: readonly SiteEdit[],
    refusal: string,
    cause: unknown,
  ): Promise<readonly PromiseSettledResult<Committed>[]> {
    const [{ site } = { site: '' }, ...others] = edits;
    if (others.length === 0) {
      const reason = new CommitRefusedError(refusal, { cause });
      this.#deps.onNotice(`${site}: ${reason.message}`);
      return [{ status: 'rejected', reason }];
    }
    const outcomes: PromiseSettledResult<Committed>[] = [];
    for (const edit of edits) {
      const alone = await Promise.allSettled([this.#commitAll([edit])]);
      outcomes.push(...alone.flatMap((one) => (one.status === 'fulfilled' ? one.value : [one])));
    }
    return outcomes;
  }

  /** Creates the commits, returns their ids. Fails if the branch has moved from `parent`; in a mirror, #push does. */
  async #make(parent: string | null, commits: readonly FileCommit[]): Promise<readonly string[]> {
    const { git, branch, clock } = this.#deps;
    const seconds = Math.floor(clock.date().getTime() / 1000);
    return await makeCommits(git, { ref: branch.ref, unpushed: UNPUSHED }, { parent, commits, seconds });
  }

  async #push(revision: string | undefined): Promise<void> {
    const { git, branch } = this.#deps;
    if (!git.isMirror) return;
    await git.run(['push', '--progress', 'origin', `${revision}:${branch.ref}`]);
    await git.run(['update-ref', branch.ref, `${revision}`]);
  }

  async #textsOf(parent: string | null, edits: readonly SiteEdit[]): Promise<Map<string, string>> {
    if (parent === null) return new Map();
    const sites = [...new Set(edits.map(({ site }) => site))];
    const files = await Promise.all(sites.map((site) => this.#deps.files.readSite(parent, site)));
    return new Map(files.flatMap((file) => (file === null ? [] : [[file.site, file.text]])));
  }
}
