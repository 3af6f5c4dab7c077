import { type Clock, systemClock } from '../../../base/clock.ts';
import { withinTime } from '../../../base/time-limit.ts';
import type { KubernetesClient } from './contract.ts';
import { faultReason } from './errors.ts';
import type { KubernetesObject, ObjectAddress } from './kinds.ts';
import { heldLease, isFree, type ObservedLease, observeLease, releasedLease } from './lease.ts';
import { untilAborted } from './until-aborted.ts';

/**
 * The part of the Lease's duration for which the holder may write after a renewal. Another process takes over only
 * after the whole duration.
 */
const WRITES = 2 / 3;
/**
 * The pause between renewals, or between reads of another process's Lease, as a part of the duration. At random, it is
 * up to twice as long.
 */
const PAUSE = 1 / 8;
/** The timeout of one attempt, as a part of the duration. */
const ATTEMPT = 1 / 4;

interface ElectionOptions {
  /** The namespace and name of the Lease. */
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process: a host's name with a random part. */
  readonly identity: string;
  /** The Lease's duration, in whole seconds. Default: 15. */
  readonly seconds?: number;
  /** Annotations that each renewal sets, for a later holder. Default: none. */
  readonly annotations?: () => Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** 0 to below 1. */
  readonly random?: () => number;
}

/**
 * Takes part in the election of a leader by a Lease, and again after each loss, until it is closed. The Lease is no
 * fence: the API server accepts writes of every process. So a writer asks `mayWrite` before each write, and stops by
 * its own clock long before another process can hold the Lease. The clocks need not agree; they only have to run at
 * about the same speed.
 */
export class Election {
  readonly #client: KubernetesClient;
  readonly #options: Required<ElectionOptions>;
  readonly #address: ObjectAddress;
  readonly #end = new AbortController();
  readonly #done: Promise<void>;
  #observed: ObservedLease | null = null;
  /** The end of the right to write, by both clocks: a monotonic one may stop while a machine is suspended. */
  #until: { readonly now: number; readonly date: number } | null = null;
  /** Aborts when the newest right to write ends. */
  #held = new AbortController();
  #acquired = Promise.withResolvers<AbortSignal>();
  #fault: Error | null = null;

  constructor(client: KubernetesClient, options: ElectionOptions) {
    this.#client = client;
    this.#options = {
      ...{ seconds: 15, clock: systemClock, random: Math.random, annotations: () => ({}) },
      ...options,
    };
    this.#address = { kind: 'Lease', namespace: options.namespace, name: options.name };
    this.#done = this.#run();
  }

  /** Ask this before each write. It is false from the local deadline on, even if the loss hasn't been noticed yet. */
  mayWrite(): boolean {
    const { clock } = this.#options;
    const until = this.#until;
    return until !== null && clock.now() < until.now && clock.date().getTime() < until.date;
  }

  /** Resolves when this process may write, with a signal that aborts when it no longer may. */
  async acquired(signal: AbortSignal): Promise<AbortSignal> {
    const either = AbortSignal.any([signal, this.#end.signal]);
    for (;;) {
      either.throwIfAborted();
      const reason = () => this.#fault ?? either.reason;
      const held = await untilAborted(this.#acquired.promise, [either], reason);
      if (!held.aborted) return held;
    }
  }

  /** The process that holds the Lease, as far as this one knows; `null`: none does. */
  get holder(): string | null {
    return this.#observed?.spec.holderIdentity || null;
  }

  /** The Lease's metadata as this process last read or wrote it; `null`: there was none. */
  get metadata(): KubernetesObject['metadata'] | null {
    return this.#observed?.object.metadata ?? null;
  }

  /** The last error while the Lease can't be read or renewed; `null`: it can. */
  get fault(): Error | null {
    return this.#fault;
  }

  /** Ends the right to write, and then gives the Lease up, so that another process can take it at once. */
  async close(): Promise<void> {
    this.#lose();
    this.#end.abort(new Error('the election is closed'));
    await this.#done;
    this.#lose();
    await this.#release().catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { clock, seconds, random } = this.#options;
    const { signal } = this.#end;
    const duration = seconds * 1000;
    while (!signal.aborted) {
      try {
        const attempt = (limited: AbortSignal) => this.#attempt(limited);
        await withinTime(duration * ATTEMPT, attempt, { signal, clock });
        this.#fault = null;
      } catch (error) {
        this.#fault = error instanceof Error ? error : new Error(String(error));
      }
      const pause = clock.sleep(duration * PAUSE * (1 + random()), { signal, ref: false });
      await (this.#until === null ? pause : this.#holdUntil(pause));
    }
  }

  /** Waits for the end of the pause. If the deadline of the right to write comes first, the right ends then. */
  async #holdUntil(pause: Promise<void>): Promise<void> {
    const { clock } = this.#options;
    const ended = new AbortController();
    const left = (this.#until?.now ?? 0) - clock.now();
    const deadline = clock.sleep(left, { signal: ended.signal, ref: false });
    await Promise.race([pause, deadline]);
    ended.abort();
    if (!this.mayWrite()) this.#lose();
    await pause;
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { clock, identity, seconds, annotations } = this.#options;
    const found = await this.#client.get(this.#address, signal);
    const now = clock.now();
    this.#observed = found === null ? null : observeLease(found, { before: this.#observed, now });
    if (this.#observed !== null && !isFree(this.#observed, { identity, now })) return this.#lose();
    const lease = heldLease(this.#address, this.#observed, {
      ...{ identity, seconds },
      at: clock.date(),
      annotations: annotations(),
    });
    // Counted from before the request, because other processes see the renewal only after it was sent.
    const until = seconds * 1000 * WRITES;
    const deadline = { now: clock.now() + until, date: clock.date().getTime() + until };
    const stored = await this.#write(lease, found === null, signal);
    if (stored === null || signal.aborted) return;
    this.#observed = observeLease(stored, { before: this.#observed, now: clock.now() });
    this.#hold(deadline);
  }

  /** `null`: another process was faster. */
  async #write(
    lease: KubernetesObject,
    isNew: boolean,
    signal: AbortSignal,
  ): Promise<KubernetesObject | null> {
    try {
      return await (isNew ? this.#client.create(lease, signal) : this.#client.replace(lease, signal));
    } catch (error) {
      const reason = faultReason(error);
      if (reason === 'changed' || reason === 'exists') return null;
      throw error;
    }
  }

  #hold(deadline: { readonly now: number; readonly date: number }): void {
    // If the right had ended, another process may have held the Lease since: the signal of the old right must abort.
    if (!this.mayWrite()) this.#lose();
    const wasHolder = this.#until !== null;
    this.#until = deadline;
    if (wasHolder) return;
    this.#held = new AbortController();
    this.#acquired.resolve(this.#held.signal);
  }

  #lose(): void {
    if (this.#until === null) return;
    this.#until = null;
    this.#acquired = Promise.withResolvers();
    this.#held.abort(new Error(`the Lease ${this.#options.name} is no longer held`));
  }

  async #release(): Promise<void> {
    const { clock, identity, seconds } = this.#options;
    await withinTime(seconds * 1000 * ATTEMPT, async (signal) => {
      const found = await this.#client.get(this.#address, signal);
      if (found === null) return;
      const observed = observeLease(found, { before: null, now: clock.now() });
      if (observed.spec.holderIdentity !== identity) return;
      await this.#client.replace(releasedLease(this.#address, observed, clock.date()), signal);
    });
  }
}
