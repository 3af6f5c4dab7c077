import { type Clock, systemClock } from '../../../base/clock.ts';
import { type Identity, readMark } from '../../../base/ownership.ts';
import { keyOfName } from './desired.ts';
import type { OutputSink, OutputSource } from './output/output.ts';
import type { ContainerInstance, Runtime } from './runtime.ts';

/** Milliseconds before the output of a stopped container is read again; sooner when the container is known to run. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/** How long a removal waits for the last lines. */
const LAST_LINES_MS = 2_000;

interface FollowedOptions {
  readonly identity: Identity;
  readonly sink: OutputSink;
  readonly log: { warn(fields: object, message: string): void };
  readonly clock?: Clock;
}

interface Follower {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  /** The container runs (again): its output is read without a pause. */
  readNow(): void;
  /** The container has stopped for good: reads what is left. */
  finish(): Promise<void>;
}

/** The same runtime, which hands the output of this host's own containers to a sink: each line once. */
export function followedRuntime(runtime: Runtime, options: FollowedOptions): Runtime {
  const { identity, sink, log, clock = systemClock } = options;
  const followers = new Map<string, Follower>();

  function consider({ id, name, mark }: Pick<ContainerInstance, 'id' | 'name' | 'mark'>): void {
    if (followers.has(id)) return;
    const { owner } = readMark(identity, mark);
    const place = keyOfName(identity.instance, name)?.split('/').slice(1, 3).join('/');
    if (owner.kind !== 'ours' || place === undefined) return;
    followers.set(id, follow({ site: owner.site, id, place }));
  }

  function follow(source: OutputSource): Follower {
    const stop = new AbortController();
    const { signal } = stop;
    let pause = FIRST_PAUSE_MS;
    let soon = new AbortController();
    let isLast = false;

    const read = async () => {
      const positions = await sink.positions(source);
      const write = async (lines: Parameters<OutputSink['write']>[1]) => {
        pause = FIRST_PAUSE_MS;
        await sink.write(source, lines);
      };
      return await runtime.output(source.id, positions, write, signal);
    };
    const run = async () => {
      while (!signal.aborted) {
        const wasLast = isLast;
        try {
          if ((await read()) === 'gone') return;
        } catch (err) {
          const { site, place } = source;
          if (!signal.aborted) log.warn({ err, site, place }, 'the output of a container can’t be read');
        }
        if (wasLast || signal.aborted) return;
        await clock.sleep(pause, { signal: AbortSignal.any([signal, soon.signal]), ref: false });
        soon = new AbortController();
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    };
    const ended = run().finally(async () => {
      await sink.ended(source);
      followers.delete(source.id);
    });
    return {
      stop,
      ended,
      readNow: () => soon.abort(),
      async finish() {
        isLast = true;
        soon.abort();
        await Promise.race([ended, clock.sleep(LAST_LINES_MS, { ref: false })]);
        stop.abort();
        await ended;
      },
    };
  }

  return {
    ...runtime,

    async list(names, signal) {
      const all = await runtime.list(names, signal);
      for (const one of all) {
        if (one.running) followers.get(one.id)?.readNow();
        consider(one);
      }
      return all;
    },

    async start(launch, signal) {
      const id = await runtime.start(launch, signal);
      consider({ ...launch, id });
      return id;
    },

    async resume(id, signal) {
      await runtime.resume(id, signal);
      followers.get(id)?.readNow();
    },

    /** The engine deletes a container's output with the container, so the last lines are read before. */
    async remove(id, signal) {
      await runtime.stop(id, signal);
      await followers.get(id)?.finish();
      await runtime.remove(id, signal);
    },

    async close() {
      await runtime.close();
      for (const { stop } of followers.values()) stop.abort();
      await Promise.all([...followers.values()].map(({ ended }) => ended));
    },
  };
}
