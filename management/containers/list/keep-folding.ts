import type { Context } from '../../context/context.ts';
import { repeatEvery } from '../../context/repeat.ts';
import { foldCounts } from '../../records/container-lists.repository.ts';

const MINUTE_MS = 60_000;

/** Each change adds rows to a container count: merges them into one, now and every minute until the signal. */
export async function keepFolding(
  { db, log }: Pick<Context, 'db' | 'log'>,
  signal: AbortSignal,
  everyMs = MINUTE_MS,
): Promise<void> {
  const fold = () =>
    foldCounts(db).catch((err: unknown) => log.error({ err }, 'rows of container counts can’t be merged'));
  await repeatEvery(fold, signal, everyMs);
}
