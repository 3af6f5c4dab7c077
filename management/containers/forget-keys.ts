import { setInterval } from 'node:timers/promises';
import type { Context } from '../context/context.ts';
import { forgetOldKeys } from './idempotency.repository.ts';

const HOUR_MS = 3_600_000;

/** Deletes idempotency keys that are over a day old: at once, and every hour until the signal. */
export async function keepForgetting(
  { db, log }: Pick<Context, 'db' | 'log'>,
  signal: AbortSignal,
  everyMs = HOUR_MS,
): Promise<void> {
  const forget = () =>
    forgetOldKeys(db).catch((err: unknown) => log.error({ err }, 'old idempotency keys can’t be deleted'));
  await forget();
  try {
    for await (const _ of setInterval(everyMs, null, { signal, ref: false })) await forget();
  } catch (error) {
    // An abort of the signal makes the timer throw.
    if (!signal.aborted) throw error;
  }
}
