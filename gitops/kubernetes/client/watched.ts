import { backoffMs } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import { keyOfObject, objectKey } from './address.ts';
import { ChangeQueue } from './change-queue.ts';
import type { ObjectChange, ObjectSelection, Watched } from './contract.ts';
import { faultReason, KubernetesRetryable } from './errors.ts';
import type { KubernetesObject, ObjectAddress } from './kinds.ts';
import { ObjectCopy } from './object-copy.ts';
import { listPaged, watchCall } from './paging.ts';
import { faultOfCall, type Transport } from './transport.ts';
import { untilAborted } from './until-aborted.ts';
import { WatchDecoder } from './watch-events.ts';

/** A watch ends after a random time between these, so that not many begin again at once; as in client-go. */
const WATCH_SECONDS = { least: 240, most: 480 } as const;
/** If the API server doesn't end a watch in time, this copy ends it after this much longer. */
const GRACE_MS = 15_000;
/** The API server sends a bookmark about once a minute: after this time without a byte the connection is given up. */
const SILENCE_MS = 150_000;
/** Everything is listed again after this, whatever the watch has shown. */
const RELIST_MS = 30 * 60_000;
/** A watch that ends sooner counts as a failure. */
const SHORTEST_MS = 1_000;
/** How long a version that a caller waits for may be missing before the watch is opened again. */
const OVERDUE_MS = 10_000;
/**
 * The longest time in which events gather while a caller waits for a version: our own writes take up to this much
 * longer.
 */
const AWAITED_MS = 50;
/**
 * A longer `Retry-After` is cut to this: a pause of hours would last long after the API server works again.
 */
const LONGEST_ASKED_MS = 60_000;
const PAUSES = { firstMs: 1_000, longestMs: 10_000 } as const;

interface Dependencies {
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly pageSize: number;
}

interface Waiter {
  readonly key: string;
  readonly resourceVersion: string;
  readonly resolve: () => void;
  /** When the wait began, or when the version was last overdue: monotonic milliseconds. */
  since: number;
}

/**
 * A copy of the selected objects: a paged listing, and then a watch that is opened again from its last version. A dead
 * connection is noticed after at most 25 s if packets get lost (by TCP's probes), after 150 s if something on the way
 * still answers for the server (no bookmark comes), and after 10 s if a caller waits for a version.
 */
export class WatchedCopy implements Watched {
  readonly #transport: Transport;
  readonly #selection: ObjectSelection;
  readonly #dependencies: Dependencies;
  readonly #copy = new ObjectCopy();
  readonly #queues = new Set<ChangeQueue>();
  readonly #waiters = new Set<Waiter>();
  /** The waiters by the key of their object. */
  readonly #waitedFor = new Map<string, Set<Waiter>>();
  #isWatchedOver = false;
  readonly #end = new AbortController();
  readonly #listed = Promise.withResolvers<void>();
  readonly #done: Promise<void>;
  /** The watch that is open now. */
  #open: AbortController | null = null;
  /** Ends the time in which events gather. */
  #gathering: AbortController | null = null;
  #fault: Error | null = null;
  #relistAt = Number.NEGATIVE_INFINITY;

  constructor(transport: Transport, selection: ObjectSelection, dependencies: Dependencies) {
    this.#transport = transport;
    this.#selection = selection;
    this.#dependencies = dependencies;
    this.#done = this.#run();
  }

  /** Aborts when the copy is closed. */
  get closed(): AbortSignal {
    return this.#end.signal;
  }

  get objects(): ReadonlyMap<string, KubernetesObject> {
    return this.#copy.objects;
  }

  get fault(): Error | null {
    return this.#fault;
  }

  async ready(signal: AbortSignal): Promise<void> {
    await this.#until(this.#listed.promise, signal);
  }

  changes(signal: AbortSignal): AsyncIterable<ObjectChange> {
    const ended = AbortSignal.any([signal, this.closed]);
    const queue = new ChangeQueue(ended, (own) => this.#queues.delete(own));
    if (!ended.aborted) this.#queues.add(queue);
    return queue;
  }

  async reached(address: ObjectAddress, resourceVersion: string, signal: AbortSignal): Promise<void> {
    const key = objectKey(address);
    if (this.#copy.has(key, resourceVersion)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { key, resourceVersion, resolve, since: this.#dependencies.clock.now() };
    this.#waiters.add(waiter);
    this.#gathering?.abort(null);
    const same = this.#waitedFor.get(key) ?? new Set<Waiter>();
    this.#waitedFor.set(key, same.add(waiter));
    if (!this.#isWatchedOver) void this.#watchOver();
    try {
      await this.#until(promise, signal);
    } finally {
      this.#waiters.delete(waiter);
      same.delete(waiter);
      if (same.size === 0 && this.#waitedFor.get(key) === same) this.#waitedFor.delete(key);
    }
  }

  /** Lets events gather, for less time if a caller waits for a version. */
  async #gather(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#dependencies;
    if (this.#waiters.size > 0) return await clock.sleep(Math.min(ms, AWAITED_MS), { signal, ref: false });
    const awaited = new AbortController();
    this.#gathering = awaited;
    await clock.sleep(ms, { signal: AbortSignal.any([signal, awaited.signal]), ref: false });
    this.#gathering = null;
  }

  /**
   * Opens the watch again when a version is overdue. One timer for all waiters: nearly all of them wait only briefly.
   */
  async #watchOver(): Promise<void> {
    const { clock } = this.#dependencies;
    this.#isWatchedOver = true;
    for (let [first] = this.#waiters; first !== undefined && !this.closed.aborted; [first] = this.#waiters) {
      const overdue = first.since + OVERDUE_MS - clock.now();
      if (overdue > 0) {
        await clock.sleep(overdue, { signal: this.closed, ref: false });
        continue;
      }
      first.since = clock.now();
      // Moved to the end, so that the first waiter always has the earliest `since`.
      this.#waiters.delete(first);
      this.#waiters.add(first);
      this.#open?.abort(
        this.#stalled(`a version that a caller waits for did not come within ${OVERDUE_MS / 1000} s`),
      );
    }
    this.#isWatchedOver = false;
  }

  async close(): Promise<void> {
    this.#end.abort(new Error('the copy is closed'));
    await this.#done;
  }

  /** Waits. If the signal aborts or the copy is closed, throws the copy's fault, else the reason of the abort. */
  async #until(promise: Promise<void>, signal: AbortSignal): Promise<void> {
    const reason = () => this.#fault ?? (signal.aborted ? signal : this.closed).reason;
    await untilAborted(promise, [signal, this.closed], reason);
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#dependencies;
    for (let failures = 0; !this.closed.aborted; ) {
      const startedAt = clock.now();
      let retryAfter = 0;
      try {
        if (clock.now() >= this.#relistAt) await this.#list();
        await this.#follow();
        failures = clock.now() - startedAt < SHORTEST_MS ? failures + 1 : 0;
      } catch (error) {
        if (this.closed.aborted) return;
        if (error instanceof KubernetesRetryable) retryAfter = error.retryAfter ?? 0;
        const isExpired = faultReason(error) === 'expired';
        if (isExpired) this.#relistAt = Number.NEGATIVE_INFINITY;
        else this.#fault = error instanceof Error ? error : new Error(String(error));
        const isFirst = isExpired || clock.now() - startedAt >= PAUSES.longestMs;
        failures = isFirst ? 1 : failures + 1;
      }
      if (failures > 0) {
        const pause = Math.max(
          backoffMs(failures, random, PAUSES),
          Math.min(retryAfter * 1000, LONGEST_ASKED_MS),
        );
        await clock.sleep(pause, { signal: this.closed, ref: false });
      }
    }
  }

  async #list(): Promise<void> {
    const { clock, random, pageSize } = this.#dependencies;
    const options = { pageSize, signal: this.closed };
    const { items, resourceVersion } = await listPaged(this.#transport, this.#selection, options);
    this.#relistAt = clock.now() + RELIST_MS * (0.9 + 0.2 * random());
    this.#publish(this.#copy.listed(items, resourceVersion), null);
    this.#fault = null;
    this.#listed.resolve();
  }

  /** Follows one watch. Resolves when the API server ends it or a listing is due; throws when it fails. */
  async #follow(): Promise<void> {
    const { clock, random } = this.#dependencies;
    const { least, most } = WATCH_SECONDS;
    const seconds = Math.round(least + (most - least) * random());
    const open = new AbortController();
    this.#open = open;
    const signal = AbortSignal.any([open.signal, this.closed]);
    const deadline = clock.now() + seconds * 1000 + GRACE_MS;
    let heardAt = clock.now();
    const guard = async () => {
      while (!signal.aborted) {
        const now = clock.now();
        if (now >= this.#relistAt) return open.abort(null);
        if (now >= deadline) return open.abort(this.#stalled('it did not end in time'));
        if (now >= heardAt + SILENCE_MS)
          return open.abort(this.#stalled(`nothing came for ${SILENCE_MS / 1000} s`));
        const until = Math.min(this.#relistAt, deadline, heardAt + SILENCE_MS);
        await clock.sleep(until - now, { signal, ref: false });
      }
    };
    const guarded = guard();
    const resourceVersion = this.#copy.version ?? '';
    const call = watchCall(this.#selection, { resourceVersion, seconds, signal });
    try {
      const chunks = await this.#transport.stream(call);
      this.#fault = null;
      const { kind, gatherMs = 0 } = this.#selection;
      const decoder = new WatchDecoder(kind);
      for await (const chunk of chunks) {
        heardAt = clock.now();
        for (const event of decoder.push(chunk)) {
          const key = event.type === 'bookmark' ? null : keyOfObject(event.object);
          this.#publish(this.#copy.take(event), key);
        }
        if (gatherMs > 0) await this.#gather(gatherMs, signal);
      }
    } catch (error) {
      if (open.signal.aborted && open.signal.reason === null) return;
      throw faultOfCall(call, error);
    } finally {
      this.#open = null;
      open.abort(null);
      await guarded;
    }
  }

  #stalled(why: string): KubernetesRetryable {
    this.#transport.renew();
    return new KubernetesRetryable('unreachable', `Kubernetes: watch ${this.#selection.kind}: ${why}`);
  }

  /**
   * `key`: the only object that has changed; `null`: several may have changed. Checking all waiters at each event would
   * take too long.
   */
  #publish(changes: readonly ObjectChange[], key: string | null): void {
    for (const change of changes) for (const queue of this.#queues) queue.push(change);
    for (const waiter of key === null ? this.#waiters : (this.#waitedFor.get(key) ?? [])) {
      if (this.#copy.has(waiter.key, waiter.resourceVersion)) waiter.resolve();
    }
  }
}
