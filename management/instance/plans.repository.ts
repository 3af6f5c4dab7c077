import { type Selectable, sql } from 'kysely';
import { storableJson } from '../../base/text.ts';
import { APPROVABLE_HOLDS, isGuarded } from '../../gitops/report/approvable.ts';
import type { PlanReport } from '../../gitops/report/report.ts';
import type { Database, Tables } from '../db/database.ts';
import type { PlanSummary } from './instance.schema.ts';

/** Plans are kept for a week, by the clock of the database, which also dates them. */
export const isKept = sql<boolean>`created_at >= now() - interval '7 days'`;

/**
 * Cut to the millisecond, as in cursors: else pages would skip rows between a cursor's millisecond and the next one.
 */
const CREATED = sql<Date>`date_trunc('milliseconds', created_at)`;

interface NewPlan {
  /** `null`: of the newest revision. */
  readonly ref: string | null;
  readonly report: PlanReport;
  readonly actor: string;
}

/**
 * Keeps a plan by its checksum, and forgets old ones. A plan can be approved if no `ref` was named, or if its revision
 * is `head`. A plan that can't be approved doesn't replace one that can: then it is not kept, and the result is
 * `undefined`. A plan of the same revision stays approved unless the provisioner holds its changes again, as it does
 * after a restart.
 */
export async function keepPlan(
  db: Database,
  head: string | null,
  { ref, report, actor }: NewPlan,
): Promise<Selectable<Tables['plans']> | undefined> {
  await db.deleteFrom('plans').where(sql<boolean>`not (${isKept})`).execute();
  const isHeld = report.changes.some(isGuarded);
  const isApprovable = ref === null || report.revision === head;
  const values = { ref, report: storableJson(report), actor };
  return await db
    .insertInto('plans')
    .values({ checksum: report.checksum, ...values })
    .onConflict((conflict) =>
      conflict
        .column('checksum')
        .doUpdateSet({
          ...values,
          created_at: sql<Date>`now()`,
          approved_at: sql<Date | null>`case when not ${isHeld}::boolean
            and plans.report->>'revision' is not distinct from ${report.revision}::text then plans.approved_at end`,
        })
        .where(
          sql<boolean>`${isApprovable}::boolean
            or (plans.ref is not null and plans.report->>'revision' is distinct from ${head}::text)`,
        ),
    )
    .returningAll()
    .executeTakeFirst();
}

interface PlanFilter {
  /** The newest revision; only its plans can be approved. */
  readonly head: string | null;
  readonly onlyWaiting: boolean;
  /** Creation time and checksum of the last one of the previous page. */
  readonly after: readonly string[] | null;
  readonly limit: number;
}

interface PlanRow extends Pick<PlanSummary, 'checksum' | 'revision' | 'ref' | 'actor' | 'blocked'> {
  readonly changes: number;
  readonly held: number;
  readonly guarded: number;
  readonly waiting: boolean;
  readonly created_at: Date;
  readonly approved_at: Date | null;
}

/** The newest first, without their changes, which may be many. */
export async function listPlans(
  db: Database,
  { head, onlyWaiting, after, limit }: PlanFilter,
): Promise<PlanSummary[]> {
  const guarded = sql<number>`(select count(*)::integer from jsonb_array_elements(report->'changes') as change
    where change->'held' ?| ${[...APPROVABLE_HOLDS]}::text[])`;
  const waiting = sql<boolean>`(approved_at is null and coalesce(report->>'revision' = ${head}, false)
    and ${guarded} > 0)`;
  const [at = '', checksum = ''] = after ?? [];
  const place = sql<boolean>`(${CREATED} < ${at}::timestamptz
    or (${CREATED} = ${at}::timestamptz and checksum > ${checksum}))`;
  const { rows } = await sql<PlanRow>`
    select checksum, ref, actor, created_at, approved_at, report->>'revision' as revision, report->'blocked' as blocked,
      jsonb_array_length(report->'changes') as changes,
      (select count(*)::integer from jsonb_array_elements(report->'changes') as change
        where jsonb_array_length(change->'held') > 0) as held,
      ${guarded} as guarded,
      ${waiting} as waiting
    from plans
    where ${isKept} and (${!onlyWaiting} or ${waiting}) and ${after === null ? sql`true` : place}
    order by ${CREATED} desc, checksum
    limit ${limit}`.execute(db);
  return rows.map(({ created_at, approved_at, ...plan }) => ({
    ...plan,
    createdAt: created_at.toISOString(),
    approvedAt: approved_at?.toISOString() ?? null,
  }));
}
