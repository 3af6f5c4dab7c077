import { setInterval } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Context } from './context/context.ts';
import type { Database } from './db/database.ts';

const HOUR_MS = 3_600_000;
/** The most rows that one statement deletes. */
const BATCH = 1_000;

type Kind = 'audit' | 'events' | 'operations';

/** Deletes rows of one kind that are older than `days`, in batches. Resolves to the number of deleted rows. */
export async function pruneHistory(
  db: Database,
  kind: Kind,
  days: number,
  { batch = BATCH, signal }: { readonly batch?: number; readonly signal?: AbortSignal } = {},
): Promise<number> {
  let sum = 0;
  for (let pruned = batch; pruned === batch && signal?.aborted !== true; sum += pruned) {
    const { rows } = await sql<{ pruned: number }>`
      select prune_history(${kind}, ${days}::integer, ${batch}::integer) as pruned`.execute(db);
    pruned = rows[0]?.pruned ?? 0;
  }
  return sum;
}

/** Deletes history that is older than the settings allow: now, and every hour until the signal. 0 days: never. */
export async function keepPruning(
  { db, log, settings }: Pick<Context, 'db' | 'log' | 'settings'>,
  signal: AbortSignal,
): Promise<void> {
  const kinds = Object.entries(settings.retentionDays) as [Kind, number][]; // Object.entries drops the key type
  const prune = async () => {
    for (const [kind, days] of kinds) {
      if (days === 0) continue;
      try {
        const pruned = await pruneHistory(db, kind, days, { signal });
        if (pruned > 0) log.info({ kind, days, pruned }, 'old history was deleted');
      } catch (err) {
        log.error({ err, kind }, 'old history can’t be deleted');
      }
    }
  };
  await prune();
  try {
    for await (const _ of setInterval(HOUR_MS, null, { signal, ref: false })) await prune();
  } catch (error) {
    // An abort of the signal makes the timer throw.
    if (!signal.aborted) throw error;
  }
}
