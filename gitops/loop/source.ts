import type { Clock } from '../../base/clock.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import type { HostLease } from '../../sites/repo/host-lease.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { DesiredStateReader } from '../desired/reader.ts';

/** How long a pass waits for the newest revision, milliseconds: repairs of this host must not depend on the remote. */
const WAIT_MS = 4_000;
/** The same, milliseconds, for a pass after a read that failed or came too late. */
const WAIT_AGAIN_MS = 1_000;
/** A remote that is only slow is a problem after this time without an answer, milliseconds. */
const SLOW_MS = 60_000;

/** Since when the newest revision can't be read, and why. */
export interface SourceProblem {
  readonly since: Date;
  readonly seconds: number;
  readonly error: Error;
}

export interface SourceDeps {
  readonly repo: Pick<SitesRepo, 'head' | 'fetched'>;
  readonly reader: Pick<DesiredStateReader, 'read'>;
  /** Throws where another daemon acts as this host. Default: no lease. */
  readonly lease?: Pick<HostLease, 'hold' | 'assertNotLost'> | undefined;
  readonly clock: Clock;
  /** Called when a revision was read too late for the pass that asked for it. */
  readonly onLateRevision: () => void;
}

/** What the last passes have read. */
interface Accepted {
  /** `null`: this process has not read anything yet. */
  readonly desired: DesiredState | null;
  /** `null`: no process has read anything yet. */
  readonly revision: string | null;
}

interface SourceReading {
  readonly desired: DesiredState;
  /** True if it contains every commit that this host knew before this read. */
  readonly isComplete: boolean;
}

/**
 * Reads the desired state for a pass. Where the newest revision can't be read, or not in time, the last one that could
 * be read stays in force (docs/reconciler.md, rule 3).
 */
export class Source {
  readonly #deps: SourceDeps;
  #problem: Problem | null = null;

  constructor(deps: SourceDeps) {
    this.#deps = deps;
  }

  /** `null`: the newest revision could be read, or a slow remote may still answer. */
  get problem(): SourceProblem | null {
    if (this.#problem === null) return null;
    const { since, sinceMs, error, hasFailed } = this.#problem;
    const ageMs = this.#deps.clock.now() - sinceMs;
    if (!hasFailed && ageMs < SLOW_MS) return null;
    return { since, seconds: Math.round(ageMs / 1000), error };
  }

  /**
   * `null`: there is no branch and never was one. Throws `SitesRepoError` if no revision can be read, and what the
   * lease throws.
   */
  async read(accepted: Accepted): Promise<SourceReading | null> {
    const startedAt = { since: this.#deps.clock.date(), sinceMs: this.#deps.clock.now() };
    const newest = this.#newest();
    const outcome = await this.#inTime(newest, accepted.revision === null ? null : this.#waitMs());
    if (outcome.status === 'fulfilled') {
      this.#problem = null;
      return outcome.value === null ? null : { desired: outcome.value, isComplete: true };
    }
    const { reason } = outcome;
    if (!(reason instanceof SitesRepoError)) throw reason;
    await this.#deps.lease?.assertNotLost();
    this.#note(reason, startedAt);
    const known = await this.#known(accepted, reason);
    if (reason instanceof LateError) this.#follow(newest, known.desired.revision, startedAt);
    return known;
  }

  #waitMs(): number {
    return this.#problem === null ? WAIT_MS : WAIT_AGAIN_MS;
  }

  async #newest(): Promise<DesiredState | null> {
    const { repo, reader, lease } = this.#deps;
    const revision = await repo.head();
    await lease?.hold();
    return revision === null ? null : await reader.read(revision);
  }

  /** The newest revision that is on this host. */
  async #known(accepted: Accepted, error: Error): Promise<SourceReading> {
    const { repo, reader } = this.#deps;
    const fetched = await repo.fetched().catch(() => null);
    if (fetched !== null) {
      const read = await this.#inTime(reader.read(fetched), WAIT_MS);
      if (read.status === 'fulfilled') return { desired: read.value, isComplete: true };
    }
    if (accepted.desired !== null) return { desired: accepted.desired, isComplete: false };
    if (accepted.revision === null) throw error;
    const read = await this.#inTime(reader.read(accepted.revision), WAIT_MS);
    if (read.status === 'rejected') throw error;
    return { desired: read.value, isComplete: false };
  }

  async #inTime<Value>(work: Promise<Value>, ms: number | null): Promise<PromiseSettledResult<Value>> {
    const ended = new AbortController();
    const tooLate = async () => {
      await this.#deps.clock.sleep(ms ?? 0, { signal: ended.signal });
      throw new LateError(`no answer within ${(ms ?? 0) / 1000} s`);
    };
    const [outcome] = await Promise.allSettled([ms === null ? work : Promise.race([work, tooLate()])]);
    ended.abort();
    return outcome;
  }

  #note(error: Error, startedAt: Pick<Problem, 'since' | 'sinceMs'>): void {
    const hasFailed = this.#problem?.hasFailed === true || !(error instanceof LateError);
    this.#problem = { ...(this.#problem ?? startedAt), error, hasFailed };
  }

  #follow(
    newest: Promise<DesiredState | null>,
    used: string,
    startedAt: Pick<Problem, 'since' | 'sinceMs'>,
  ): void {
    newest.then(
      (desired) => {
        this.#problem = null;
        if (desired?.revision !== used) this.#deps.onLateRevision();
      },
      (error: unknown) => {
        if (error instanceof SitesRepoError) this.#note(error, startedAt);
      },
    );
  }
}

interface Problem {
  readonly since: Date;
  readonly sinceMs: number;
  readonly error: Error;
  /** False: the remote was only slow. */
  readonly hasFailed: boolean;
}

/** The sites repository may still answer. */
class LateError extends SitesRepoError {
  override name = 'LateError';
}
