/** A run older than this counts as lost, for example because its request was cancelled. */
const LOST_AFTER_MS = 10_000;

interface Run<T> {
  readonly startedAt: number;
  readonly result: Promise<T>;
}

/**
 * Concurrent callers with the same key get the result of one run. The run belongs to the request that started it, which
 * keeps it alive past its own response by `waitUntil`.
 */
export function singleFlight<T>(now: () => number) {
  const runs = new Map<string, Run<T>>();
  return (key: string, waitUntil: (work: Promise<unknown>) => void, start: () => Promise<T>): Promise<T> => {
    const current = runs.get(key);
    if (current !== undefined && now() - current.startedAt < LOST_AFTER_MS) return current.result;
    const result = start();
    const run = { startedAt: now(), result };
    runs.set(key, run);
    const remove = () => {
      if (runs.get(key) === run) runs.delete(key);
    };
    waitUntil(result.then(remove, remove));
    return result;
  };
}

/** The result of `work`, or `undefined` if it takes longer than `ms`. `work` is not cancelled. */
export function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    work.then(resolve, reject).then(() => clearTimeout(timer));
  });
}

/** Work that waits for no I/O is usually done after this number of microtasks, which together cost less than a timer. */
const MICROTASKS = 8;

/** Like `within`, but without a timer for work that waits for no I/O. */
export async function soonWithin<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  work.then(done, done);
  for (let count = 0; count < MICROTASKS && !isDone; count += 1) await undefined;
  return isDone ? work : within(work, ms);
}
