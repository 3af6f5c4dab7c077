import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import {
  ACTIVE_ROLLOUT,
  REVERTIBLE,
  type RolloutReason,
  type RolloutSiteState,
  type RolloutStatus,
} from '../lifecycle/rollout.ts';

export type RolloutRow = Selectable<Tables['image_rollouts']>;
export type RolloutSite = Selectable<Tables['image_rollout_sites']>;
type SiteValues = Updateable<Tables['image_rollout_sites']>;

/** How long a process has a rollout to itself if it doesn't renew its lease. */
const LEASE = sql<Date>`now() + interval '15 seconds'`;
/** Rows that one statement inserts: PostgreSQL takes 65,535 parameters. */
const BATCH = 1_000;

/** A site of a new rollout. */
type NewSite = Pick<Insertable<Tables['image_rollout_sites']>, 'site_id' | 'container_id'>;

/** `null`: another rollout is active. */
export async function insertRollout(
  db: Database,
  row: Insertable<Tables['image_rollouts']>,
  sites: readonly NewSite[],
): Promise<RolloutRow | null> {
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtext('tagyard image rollouts'))`.execute(trx);
    const rollout = await trx
      .insertInto('image_rollouts')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .executeTakeFirst();
    if (rollout === undefined) return null;
    const rows = sites.map((site, position) => ({ rollout_id: rollout.id, position, ...site }));
    for (let start = 0; start < rows.length; start += BATCH) {
      await trx
        .insertInto('image_rollout_sites')
        .values(rows.slice(start, start + BATCH))
        .execute();
    }
    return rollout;
  });
}

export async function findRollout(db: Database, id: string): Promise<RolloutRow | undefined> {
  return await db.selectFrom('image_rollouts').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Newest first; `cursor`: `seq` of the last rollout of the previous page. */
export async function listRollouts(
  db: Database,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<RolloutRow[]> {
  let query = db
    .selectFrom('image_rollouts')
    .selectAll()
    .select(sql<string>`seq::text`.as('seq'))
    .orderBy('image_rollouts.seq', 'desc')
    .limit(limit);
  if (cursor !== undefined) query = query.where('image_rollouts.seq', '<', cursor);
  return await query.execute();
}

/** How many sites of each rollout have each state. */
export async function siteCounts(
  db: Database,
  rollouts: readonly string[],
): Promise<ReadonlyMap<string, Partial<Record<RolloutSiteState, number>>>> {
  if (rollouts.length === 0) return new Map();
  const rows = await db
    .selectFrom('image_rollout_sites')
    .select(['rollout_id', 'state', sql<number>`count(*)::integer`.as('count')])
    .where('rollout_id', 'in', rollouts)
    .groupBy(['rollout_id', 'state'])
    .execute();
  const byRollout = Map.groupBy(rows, ({ rollout_id }) => rollout_id);
  return new Map(
    [...byRollout].map(([id, counts]) => [
      id,
      Object.fromEntries(counts.map(({ state, count }) => [state, count])),
    ]),
  );
}

/** The sites of a rollout, in its order. */
export async function rolloutSites(db: Database, rollout: string): Promise<RolloutSite[]> {
  return await db
    .selectFrom('image_rollout_sites')
    .selectAll()
    .where('rollout_id', '=', rollout)
    .orderBy('position')
    .execute();
}

/** The active rollout, for this process alone; `null`: there is none, or another process has it. */
export async function leaseRollout(db: Database, process: string): Promise<RolloutRow | null> {
  const leased = await db
    .updateTable('image_rollouts')
    .set({ leased_by: process, leased_until: LEASE })
    .where('status', 'in', ACTIVE_ROLLOUT)
    .where(({ or, eb }) =>
      or([
        eb('leased_until', 'is', null),
        eb('leased_by', '=', process),
        eb('leased_until', '<', sql<Date>`now()`),
      ]),
    )
    .returningAll()
    .executeTakeFirst();
  return leased ?? null;
}

/** Ends this process's leases, so that another process can continue at once. */
export async function releaseRollouts(db: Database, process: string): Promise<void> {
  await db
    .updateTable('image_rollouts')
    .set({ leased_by: null, leased_until: null })
    .where('leased_by', '=', process)
    .execute();
}

/** How a wave begins for one of its sites. */
export interface WaveStart {
  readonly site: string;
  readonly state: 'changing' | 'already' | 'skipped';
  readonly fromImage: string;
  readonly reason: RolloutReason | null;
  readonly detail: string | null;
}

/** `false`: the rollout doesn't run any more, or sites of a wave are still changing. */
export async function startWave(
  db: Database,
  rollout: string,
  starts: readonly WaveStart[],
  at: Date,
): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom('image_rollouts')
      .select('status')
      .where('id', '=', rollout)
      .forUpdate()
      .executeTakeFirst();
    if (row?.status !== 'running') return false;
    const { begun, changing } = await trx
      .selectFrom('image_rollout_sites')
      .select([
        sql<number>`coalesce(max(wave), 0)`.as('begun'),
        sql<number>`(count(*) filter (where state = 'changing'))::integer`.as('changing'),
      ])
      .where('rollout_id', '=', rollout)
      .executeTakeFirstOrThrow();
    if (changing > 0) return false;
    for (const { site, state, fromImage, reason, detail } of starts) {
      const values = { state, from_image: fromImage, reason, detail, wave: begun + 1, since: at };
      await moveSite(trx, { rollout_id: rollout, site_id: site, state: 'pending' }, values);
    }
    return true;
  });
}

/** Writes only while the site has the state that was read; `false`: it has another one now. */
export async function moveSite(
  db: Database,
  { rollout_id, site_id, state }: Pick<RolloutSite, 'rollout_id' | 'site_id' | 'state'>,
  values: SiteValues,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('image_rollout_sites')
    .set(values)
    .where('rollout_id', '=', rollout_id)
    .where('site_id', '=', site_id)
    .where('state', '=', state)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

interface RolloutEnd {
  readonly status: RolloutStatus;
  readonly reason?: RolloutReason | null;
  readonly detail?: string | null;
}

/** `undefined`: the rollout has none of the statuses `from`, and nothing changed. */
export async function moveRollout(
  db: Database,
  id: string,
  from: readonly RolloutStatus[],
  to: RolloutEnd,
): Promise<RolloutRow | undefined> {
  return await db
    .updateTable('image_rollouts')
    .set({ ...to, updated_at: new Date() })
    .where('id', '=', id)
    .where('status', 'in', from)
    .returningAll()
    .executeTakeFirst();
}

/**
 * Records that a site has failed, and lets no further wave begin. The rollout gets only the first failure as `why`;
 * during a revert, none. `false`: the site no longer has the state that was read, and nothing changed.
 */
export async function failSite(
  db: Database,
  site: Pick<RolloutSite, 'rollout_id' | 'site_id' | 'state'>,
  failure: { readonly reason: RolloutReason; readonly detail: string | null },
  why: string,
): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    // Locks the rollout before its site, like the start of a revert.
    const { rollout_id: id } = site;
    await trx.selectFrom('image_rollouts').select('id').where('id', '=', id).forUpdate().execute();
    if (!(await moveSite(trx, site, { state: 'failed', ...failure }))) return false;
    await trx
      .updateTable('image_rollouts')
      .set({ status: 'stopping', reason: 'site_failed', detail: why, updated_at: new Date() })
      .where('id', '=', id)
      .where('status', 'in', ['running', 'stopping'])
      .where('reason', 'is', null)
      .execute();
    return true;
  });
}

/** Whether another rollout than this one is active. */
export async function isOtherActive(db: Database, id: string): Promise<boolean> {
  const other = await db
    .selectFrom('image_rollouts')
    .select('id')
    .where('status', 'in', ACTIVE_ROLLOUT)
    .where('id', '!=', id)
    .executeTakeFirst();
  return other !== undefined;
}

/** Starts the revert of all sites that the rollout has changed. `false`: another rollout is active. */
export async function revertRollout(db: Database, id: string, at: Date): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    // If two rollouts start at the same moment, the second one waits here, and then sees the first.
    await sql`select pg_advisory_xact_lock(hashtext('tagyard image rollouts'))`.execute(trx);
    if (await isOtherActive(trx, id)) return false;
    await trx
      .updateTable('image_rollouts')
      .set({ status: 'reverting', reason: null, detail: null, updated_at: at })
      .where('id', '=', id)
      .execute();
    await trx
      .updateTable('image_rollout_sites')
      .set({ state: 'reverting', reason: null, detail: null, revision: null, since: at, well_since: null })
      .where('rollout_id', '=', id)
      .where('state', 'in', REVERTIBLE)
      .execute();
    return true;
  });
}
