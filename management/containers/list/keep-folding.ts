import type { Context } from '../../context/context.ts';
import { repeatEvery } from '../../context/repeat.ts';
import { foldCounts } from '../../records/container-lists.repository.ts';

const MINUTE_MS = 60_000;

/** Folds the counts of containers now, and every minute until the signal, because each change adds rows. */
export async function keepFolding(
  { db, log }: Pick<Context, 'db' | 'log'>,
  signal: AbortSignal,
  everyMs = MINUTE_MS,
): Promise<void> {
  const fold = () =>
    foldCounts(db).catch((err: unknown) => log.error({ err }, 'the counts of containers can’t be folded'));
  await repeatEvery(fold, signal, everyMs);
}
