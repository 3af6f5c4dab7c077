import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { connectEmbedded } from '../../../management/db/connect.ts';
import { migrate } from '../../../management/db/migrate.ts';

const HOUR_MS = 3_600_000;

test('sums of quarter hours are known only from a full hour on that no earlier release counts', async () => {
  await using db = connectEmbedded();
  await migrate(db, '0023_handover');
  await sql`insert into traffic_hours values (gen_random_uuid(), now(), false, '{"n": 1}')`.execute(db);
  const before = Date.now();
  await migrate(db);
  const state = await db.selectFrom('traffic_state').selectAll().executeTakeFirstOrThrow();
  const from = state.quarters_from?.getTime();
  // One to two hours later: until then, a process of the earlier release may still count.
  expect(Number(from) % HOUR_MS).toBe(0);
  expect(Number(from)).toBeGreaterThanOrEqual(before + HOUR_MS);
  expect(Number(from)).toBeLessThanOrEqual(Date.now() + 2 * HOUR_MS);
});
