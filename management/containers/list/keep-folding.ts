import type { Context } from '../../context/context.ts';
import { repeatEvery } from '../../context/repeat.ts';
import { foldCounts } from '../../records/container-lists.repository.ts';

const MINUTE_MS = 60_000;

/** Makes one row of each container count now, and every minute until the signal, because each change adds rows. */
export async function keepFolding(
  { db, log }: Pick<Context, 'db' | 'log'>,
  signal: AbortSignal,
  everyMs = MINUTE_MS,
): Promise<void> {
  const fold = () =>
    foldCounts(db).catch((err: unknown) => log.error({ err }, 'rows of container counts can’t be merged'));
  await repeatEvery(fold, signal, everyMs);
}
