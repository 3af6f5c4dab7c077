import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { PlanSummary } from './instance.schema.ts';

/** Plans are kept for a week. */
export const isKept = sql<boolean>`created_at >= now() - interval '7 days'`;

/** To the millisecond, as cursors state it: the rows between two milliseconds would be skipped. */
const CREATED = sql<Date>`date_trunc('milliseconds', created_at)`;

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
  readonly waiting: boolean;
  readonly created_at: Date;
  readonly approved_at: Date | null;
}

/** The newest first, without their changes, which may be many. */
export async function listPlans(
  db: Database,
  { head, onlyWaiting, after, limit }: PlanFilter,
): Promise<PlanSummary[]> {
  const waiting = sql<boolean>`(approved_at is null and coalesce(report->>'revision' = ${head}, false)
    and jsonb_array_length(report->'blocked') > 0)`;
  const [at = '', checksum = ''] = after ?? [];
  const place = sql<boolean>`(${CREATED} < ${at}::timestamptz
    or (${CREATED} = ${at}::timestamptz and checksum > ${checksum}))`;
  const { rows } = await sql<PlanRow>`
    select checksum, ref, actor, created_at, approved_at, report->>'revision' as revision, report->'blocked' as blocked,
      jsonb_array_length(report->'changes') as changes,
      (select count(*)::integer from jsonb_array_elements(report->'changes') as change
        where jsonb_array_length(change->'held') > 0) as held,
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
