import { z } from 'zod';
import { systemClock } from '../../base/clock.ts';
import { COMMITTER } from './edits/fast-import.ts';
import { SitesRepoError } from './errors.ts';
import type { GitDir } from './git-dir.ts';
import { hasEnded, ownIdentity, processIdentity, ranHere } from './lease/process-identity.ts';
import { makeCommits } from './new-commits.ts';

const record = z.object({
  /** Grows by one with each new holder. */
  term: z.number(),
  /** The holder's own id, which it keeps in its state folder. */
  holder: z.string(),
  /** See `LeaseSettings`. `null` also in the record of an earlier release. */
  installation: z.string().nullable().default(null),
  process: processIdentity,
  since: z.iso.datetime(),
});
type LeaseRecord = z.output<typeof record>;

interface LeaseSettings {
  readonly host: string;
  readonly holder: string;
  /**
   * What all pods of one installation in a cluster have in common. A new pod takes the lease from an earlier one, which
   * then never gets it back. `null`: this holder runs in no such pod.
   */
  readonly installation?: string | null;
  /** Takes the lease from another holder if the lease has this term. The operator has stopped that holder. */
  readonly takeoverTerm: number | undefined;
}

interface Found {
  readonly revision: string;
  readonly record: LeaseRecord;
}

const MAX_LOST_RACES = 5;
/** The trailer with the id of the holder. */
const HOLDER = 'Holder';
const UNPUSHED = 'refs/tagyard/unpushed-lease';

/** Another daemon acts under this host's name. */
export class LeaseHeldError extends Error {
  override name = 'LeaseHeldError';
}

/**
 * The right to act as a host: the ref `refs/tagyard/hosts/<host>` of the sites repository, moved by compare-and-swap
 * (docs/reconciler.md, rule 16). It doesn't expire. While git can't be reached, the holder keeps acting, and no other
 * daemon can take the lease.
 */
export class HostLease {
  readonly #git: GitDir;
  readonly #settings: LeaseSettings;
  readonly #onNotice: (message: string) => void;
  /** The commit by which this process took the lease. */
  #held: string | null = null;
  /** The commit that `#held` replaced. A fetch that began before the push may still show that commit. */
  #replaced: string | null = null;
  #refusal: LeaseHeldError | null = null;
  /** Why the lease could not be written; `null`: it was written, or no attempt was made. */
  #failure: string | null = null;
  /** The last commit that was made for a push. */
  #unpushed: { readonly parent: string | null; readonly term: number; readonly revision: string } | null =
    null;
  #isRetrying = false;

  constructor(git: GitDir, settings: LeaseSettings, onNotice: (message: string) => void) {
    this.#git = git;
    this.#settings = settings;
    this.#onNotice = onNotice;
  }

  /**
   * Takes or keeps the lease. Call it after a fetch. Throws `LeaseHeldError`, or `SitesRepoError` if git can't be read.
   * A daemon that can't write the lease acts without it, because a daemon that may only read the repository must work,
   * too. Each call then tries again in the background, so that a remote that is slow to refuse delays no pass.
   */
  async hold(): Promise<void> {
    for (let lost = 0; lost < MAX_LOST_RACES; lost += 1) {
      const found = await this.#find();
      if (found !== null && [this.#held, this.#replaced].includes(found.revision)) return;
      this.#refusal = found === null ? null : await this.#refusalOf(found);
      this.#assertNotRefused();
      if (this.#failure !== null) {
        void this.#tryAgain(found);
        return;
      }
      if (await this.#claim(found)) return;
      if (this.#git.isMirror) await this.#git.fetch();
    }
    throw new SitesRepoError(`the lease of the host ${this.#settings.host} changed too often; try again`);
  }

  /** Deletes the lease of this process, so that any machine can have the host's name. */
  async release(): Promise<void> {
    const held = this.#held;
    if (held === null) return;
    if (this.#git.isMirror) {
      const only = `--force-with-lease=${this.#ref}:${held}`;
      await this.#git.run(['push', '--progress', only, 'origin', `:${this.#ref}`]);
    }
    await this.#git.run(['update-ref', '-d', this.#ref, held]);
    this.#held = null;
  }

  /**
   * Checks the lease while git can't be read. Throws `LeaseHeldError` if another daemon had the lease when this process
   * or an earlier one last read git.
   */
  async assertNotLost(): Promise<void> {
    this.#assertNotRefused();
    if (this.#held !== null) return;
    const found = await this.#lastKnown();
    // Nothing can be taken now, neither from an ended process nor by a takeover.
    if (found === null || this.#isOwn(found.record)) return;
    throw this.#heldBy(found.record);
  }

  /** What this machine's copy of the repository says; `null`: nothing, or the copy can't be read either. */
  async #lastKnown(): Promise<Found | null> {
    try {
      return await this.#find();
    } catch (error) {
      if (error instanceof SitesRepoError) return null;
      throw error;
    }
  }

  #assertNotRefused(): void {
    if (this.#refusal !== null) throw this.#refusal;
  }

  get #ref(): string {
    return `refs/tagyard/hosts/${this.#settings.host}`;
  }

  async #find(): Promise<Found | null> {
    const listed = await this.#git.run(['for-each-ref', '--format=%(objectname)', this.#ref]);
    const revision = listed.toString().trim();
    if (revision === '') return null;
    if (revision === this.#held) return { revision, record: this.#record(0) };
    const text = (await this.#git.run(['cat-file', 'blob', `${revision}:lease.json`])).toString();
    const parsed = record.safeParse(parseJson(text));
    if (parsed.success) return { revision, record: parsed.data };
    throw new SitesRepoError(`${this.#ref} is not a lease; delete that ref in the sites repository`);
  }

  async #refusalOf(found: Found): Promise<LeaseHeldError | null> {
    const { record } = found;
    if (hasEnded(record.process)) return null;
    if (this.#held !== null) return this.#heldBy(record);
    const isFree = record.term === this.#settings.takeoverTerm || this.#isOwn(record);
    return isFree || (await this.#isOfEarlierPod(found)) ? null : this.#heldBy(record);
  }

  /**
   * True if another pod of this installation has the lease, and this pod never had it. A pod that had it was replaced:
   * its container may restart where the cluster can't reach it, and must not take the lease back.
   */
  async #isOfEarlierPod({ revision, record }: Found): Promise<boolean> {
    const { installation = null, holder } = this.#settings;
    if (installation === null || record.installation !== installation) return false;
    const own = ['--fixed-strings', `--grep=${HOLDER}: ${holder}`];
    return (await this.#git.run(['rev-list', '--max-count=1', ...own, revision])).length === 0;
  }

  /** Copies of a state folder have the same id. So the lease isn't ours while another process that took it still runs. */
  #isOwn({ holder, process }: LeaseRecord): boolean {
    return holder === this.#settings.holder && !isAlive(process);
  }

  #heldBy({ term, process, since }: LeaseRecord): LeaseHeldError {
    const { host } = this.#settings;
    return new LeaseHeldError(
      `another daemon acts as the host ${host}: process ${process.pid} on ${process.hostname}, since ${since}. ` +
        `Give this daemon another HOST_NAME; or stop the other one for good and start this one with HOST_TAKEOVER_TERM=${term}`,
    );
  }

  async #tryAgain(found: Found | null): Promise<void> {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    await this.#claim(found)
      // Git can't be reached. The next pass reports that.
      .catch(() => undefined)
      .finally(() => {
        this.#isRetrying = false;
      });
  }

  /** Tries to write the lease. False: another daemon was faster. */
  async #claim(found: Found | null): Promise<boolean> {
    const isSame = found?.record.holder === this.#settings.holder;
    const term = (found?.record.term ?? 0) + (isSame ? 0 : 1);
    const parent = found?.revision ?? null;
    let revision: string | null = null;
    try {
      revision = await this.#commit(parent, term);
      // Without force, a remote refuses a commit that doesn't follow the present one.
      if (this.#git.isMirror) {
        await this.#git.run(['push', '--progress', 'origin', `${revision}:${this.#ref}`]);
        // If git can't be reached after a restart, this ref shows who the holder is.
        await this.#git.run(['update-ref', this.#ref, revision]);
      }
    } catch (error) {
      const now = await this.#present();
      if (now !== revision && now !== parent) return false;
      if (now !== revision || revision === null) {
        this.#actWithout(error);
        return true;
      }
    }
    this.#held = revision;
    this.#replaced = parent;
    this.#failure = null;
    return true;
  }

  /** The commit that the ref names now, at the remote if there is one. */
  async #present(): Promise<string | null> {
    if (!this.#git.isMirror) return (await this.#find())?.revision ?? null;
    const listed = (await this.#git.run(['ls-remote', 'origin', this.#ref])).toString();
    return /^([0-9a-f]+)\t/.exec(listed)?.[1] ?? null;
  }

  #actWithout(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    // Git's message names a crash report whose name has the process id: it would differ at each attempt.
    const reason = message.replace(/fast_import_crash_\d+/, 'fast_import_crash');
    if (reason === this.#failure) return;
    this.#failure = reason;
    this.#onNotice(
      `the lease of the host ${this.#settings.host} can't be written, so a second daemon of this name would not be refused; each pass tries again: ${reason}`,
    );
  }

  /** Makes the commit of the lease, once: attempts that fail don't fill the repository. */
  async #commit(parent: string | null, term: number): Promise<string> {
    const made = this.#unpushed;
    const isSame = made !== null && made.parent === parent && made.term === term;
    // It is gone with a mirror that was deleted.
    if (isSame && (await this.#git.has(made.revision))) return made.revision;
    const { host, holder } = this.#settings;
    const commit = {
      path: 'lease.json',
      text: `${JSON.stringify(this.#record(term), null, 2)}\n`,
      subject: `Act as the host ${host}`,
      author: COMMITTER,
      trailers: { Host: host, Term: String(term), [HOLDER]: holder },
    };
    const seconds = Math.floor(Date.now() / 1000);
    const refs = { ref: this.#ref, unpushed: UNPUSHED };
    const [revision = ''] = await makeCommits(this.#git, refs, { parent, commits: [commit], seconds });
    if (this.#git.isMirror) this.#unpushed = { parent, term, revision };
    return revision;
  }

  #record(term: number): LeaseRecord {
    const since = new Date(Date.now()).toISOString();
    const { holder, installation = null } = this.#settings;
    return { term, holder, installation, process: ownIdentity(), since };
  }
}

/** Whether the holder may be another process that runs on this machine since this boot. */
function isAlive(identity: LeaseRecord['process']): boolean {
  return ranHere(identity) && !hasEnded(identity) && identity.pid !== process.pid;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** How long a start waits for git before it goes on without the lease, milliseconds. */
const WAIT_MS = 4_000;

/**
 * Takes the host's lease before the proxy starts, so that a second daemon of this host fails here. If git is
 * unreachable or slow, the daemon starts anyway unless another one had the lease when git was last read: the passes
 * take the lease before they change anything. Throws `LeaseHeldError`.
 */
export async function holdBeforeStart(
  repo: { head(): Promise<unknown> },
  lease: Pick<HostLease, 'hold' | 'assertNotLost'>,
  waitMs = WAIT_MS,
): Promise<void> {
  const waited = new AbortController();
  const held = repo
    .head()
    .then(() => lease.hold())
    .then(() => true);
  const late = systemClock.sleep(waitMs, { signal: waited.signal }).then(() => false);
  const isHeld = await Promise.race([held, late]).catch((error: unknown) => {
    if (error instanceof SitesRepoError) return false;
    throw error;
  });
  waited.abort();
  if (!isHeld) await lease.assertNotLost();
}
