import type { DatabaseSync } from 'node:sqlite';
import { type Clock, systemClock } from '../../../../base/clock.ts';
import type { KvStore } from '../api/stores.ts';
import { listWithChanges } from './listing.ts';
import { type PendingWrite, pendingWrites } from './pending.ts';

interface DelayedKvOptions {
  readonly db: DatabaseSync;
  readonly namespace: string;
  /** What the worker reads. */
  readonly worker: KvStore;
  /** How long the write of a key takes to arrive. */
  readonly delayMs: (key: string) => number;
  readonly clock?: Clock;
}

export interface DelayedKv {
  /** The namespace as the API shows it: with every write, without delay. */
  readonly api: KvStore;
  /** Stops delivering; what is pending is delivered after the next start. */
  close(): Promise<void>;
}

/** The pause after a failed write to the worker's store. */
const RETRY_MS = 1_000;
/** Workers KV takes no expiration within the next minute. */
const SHORTEST_LIFE_SECONDS = 60;

/**
 * A namespace whose writes reach the worker later, each key in its own time, as Workers KV's do: an old value, an old
 * absence and a deleted key are all seen for that long (docs/facts.md, Cloudflare Workers).
 */
export function delayedKv({
  db,
  namespace,
  worker,
  delayMs,
  clock = systemClock,
}: DelayedKvOptions): DelayedKv {
  const pending = pendingWrites(db, namespace);
  const now = () => clock.date().getTime();
  const seconds = () => Math.floor(now() / 1000);
  let isClosed = false;
  let delivery: Promise<void> | null = null;
  let pause = new AbortController();
  /** What the delivery waits for, milliseconds since the epoch. */
  let waitsUntil = 0;

  async function deliver(write: PendingWrite): Promise<void> {
    const { name, value, metadata, expiration } = write;
    const endsSoon = expiration !== null && expiration < seconds() + SHORTEST_LIFE_SECONDS;
    if (value === null || endsSoon) await worker.delete(name);
    else {
      await worker.put(name, value, {
        ...(metadata === undefined ? {} : { metadata }),
        ...(expiration === null ? {} : { expiration }),
      });
    }
    // By number: a newer write of the key has another one, and stays pending.
    pending.remove(write);
  }

  async function pauseUntil(time: number): Promise<void> {
    waitsUntil = time;
    pause = new AbortController();
    await clock.sleep(Math.max(0, time - now()), { signal: pause.signal });
  }

  async function deliverAll(): Promise<void> {
    for (let due = pending.nextDue(); due !== null && !isClosed; due = pending.nextDue()) {
      await pauseUntil(due);
      try {
        for (const write of pending.due(now())) if (!isClosed) await deliver(write);
      } catch {
        // It is still pending.
        await pauseUntil(now() + RETRY_MS);
      }
    }
    delivery = null;
  }

  function add(name: string, write: Pick<PendingWrite, 'value' | 'metadata' | 'expiration'>): void {
    const due = now() + delayMs(name);
    pending.add({ name, ...write, due });
    if (due < waitsUntil) pause.abort();
    delivery ??= deliverAll();
  }

  function changeOf({ name, value, metadata, expiration }: PendingWrite) {
    const isGone = value === null || (expiration !== null && expiration <= seconds());
    const extra = {
      ...(metadata === undefined ? {} : { metadata }),
      ...(expiration === null ? {} : { expiration }),
    };
    return { name, value: isGone ? null : value, key: isGone ? null : { name, ...extra } };
  }

  if (pending.nextDue() !== null) delivery = deliverAll();
  return {
    api: {
      async get(key) {
        const write = pending.of(key);
        return write === null ? await worker.get(key) : changeOf(write).value;
      },
      async put(key, value, { metadata, expiration, expirationTtl } = {}) {
        const until = expiration ?? (expirationTtl === undefined ? null : seconds() + expirationTtl);
        add(key, { value, metadata, expiration: until });
      },
      async delete(key) {
        add(key, { value: null, metadata: undefined, expiration: null });
      },
      list: (options) => listWithChanges(worker, pending.all().map(changeOf), options),
    },
    async close() {
      isClosed = true;
      pause.abort();
      await delivery;
    },
  };
}
