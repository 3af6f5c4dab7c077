import { setInterval } from 'node:timers/promises';
import type { Context } from '../context/context.ts';
import { forgetOldKeys } from './idempotency.repository.ts';

const HOUR_MS = 3_600_000;

/** Forgets idempotency keys that are over a day old, at once and every hour from then on, until the signal. */
export async function keepForgetting(
  { db, log }: Pick<Context, 'db' | 'log'>,
  signal: AbortSignal,
  everyMs = HOUR_MS,
): Promise<void> {
  const forget = () =>
    forgetOldKeys(db).catch((err: unknown) => log.error({ err }, 'old idempotency keys can’t be forgotten'));
  await forget();
  try {
    for await (const _ of setInterval(everyMs, null, { signal, ref: false })) await forget();
  } catch (error) {
    // An abort ends the waiting by throwing.
    if (!signal.aborted) throw error;
  }
}
