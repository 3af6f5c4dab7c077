import { sql } from 'kysely';
import type { Context } from './context/context.ts';
import { repeatEvery } from './context/repeat.ts';
import type { Database } from './db/database.ts';
import { pruneInvitations } from './tenants/invitations.repository.ts';

/** Milliseconds for which expired invitations are kept. */
const EXPIRED_MS = 30 * 86_400_000;
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

/**
 * Deletes history that is older than the settings allow (0 days: never), and invitations that expired 30 days ago: now,
 * and every hour until the signal.
 */
export async function keepPruning(
  { db, log, settings, clock }: Pick<Context, 'db' | 'log' | 'settings' | 'clock'>,
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
    try {
      await pruneInvitations(db, new Date(clock.date().getTime() - EXPIRED_MS));
    } catch (err) {
      log.error({ err }, 'old invitations can’t be deleted');
    }
  };
  await repeatEvery(prune, signal);
}
