import { type Clock, systemClock } from './clock.ts';
import { RetryableError } from './errors.ts';

interface WithinOptions {
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Returns the result of `work`. Throws `RetryableError` after `ms` milliseconds: it aborts the signal of `work` but
 * doesn't wait for its end, because work that hangs may ignore the signal.
 */
export async function withinTime<Result>(
  ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
  { signal, clock = systemClock }: WithinOptions = {},
): Promise<Result> {
  const ended = new AbortController();
  const done = new AbortController();
  const late = clock.sleep(ms, { signal: done.signal, ref: false }).then(() => {
    const error = new RetryableError(`no answer within ${ms / 1000} s`);
    ended.abort(error);
    throw error;
  });
  const signals = signal === undefined ? [ended.signal] : [signal, ended.signal];
  return await Promise.race([work(AbortSignal.any(signals)), late]).finally(() => done.abort());
}
