import type { Context } from '../context/context.ts';
import { repeatEvery } from '../context/repeat.ts';
import { forgetOldKeys } from '../records/idempotency.repository.ts';

/** Deletes idempotency keys that are over a day old: at once, and every hour until the signal. */
export async function keepForgetting(
  { db, log }: Pick<Context, 'db' | 'log'>,
  signal: AbortSignal,
  everyMs?: number,
): Promise<void> {
  const forget = () =>
    forgetOldKeys(db).catch((err: unknown) => log.error({ err }, 'old idempotency keys can’t be deleted'));
  await repeatEvery(forget, signal, everyMs);
}
