import { storableJson } from '../../base/text.ts';
import type { VerificationReport } from '../../edge/verification/contract.ts';
import type { Database } from '../db/database.ts';

/** Verifications that are kept of each container. */
const KEPT = 10;

export async function addVerification(
  db: Database,
  container: string,
  { status, checkedAt, checks }: VerificationReport,
): Promise<void> {
  await db
    .insertInto('verifications')
    .values({ container_id: container, status, checked_at: checkedAt, checks: storableJson(checks) })
    .execute();
  await db
    .deleteFrom('verifications')
    .where('container_id', '=', container)
    .where('seq', 'not in', (inner) =>
      inner
        .selectFrom('verifications')
        .select('seq')
        .where('container_id', '=', container)
        .orderBy('seq', 'desc')
        .limit(KEPT),
    )
    .execute();
}

/** The last verifications of a container, the newest first. */
export async function listVerifications(db: Database, container: string): Promise<VerificationReport[]> {
  const rows = await db
    .selectFrom('verifications')
    .select(['status', 'checked_at', 'checks'])
    .where('container_id', '=', container)
    .orderBy('seq', 'desc')
    .limit(KEPT)
    .execute();
  return rows.map(({ checked_at, ...row }) => ({ ...row, checkedAt: checked_at.toISOString() }));
}
