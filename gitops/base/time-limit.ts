import { type Clock, systemClock } from './clock.ts';
import { RetryableError } from './errors.ts';

interface WithinOptions {
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/**
 * The result of `work`, or a `RetryableError` after `ms` milliseconds. The work's signal aborts then, but its end isn't
 * awaited: what hangs may not notice the signal either.
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
