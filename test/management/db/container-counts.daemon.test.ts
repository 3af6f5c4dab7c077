import { PGlite } from '@electric-sql/pglite';
import { Kysely, sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database, Tables } from '../../../management/db/database.ts';
import { EmbeddedDialect } from '../../../management/db/embedded-dialect.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { countContainers, foldCounts } from '../../../management/records/container-lists.repository.ts';

const ADA = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const BOB = '7c9e6679-7425-40de-944b-e07fc1f90aff';
const CALLERS = [{ subject: 'ada' }, { subject: 'both' }, { subject: 'stranger' }];

let added = 0;
let db: Database;
beforeAll(async () => {
  db = new Kysely<Tables>({ dialect: new EmbeddedDialect({ pglite: await PGlite.create() }) });
  await migrate(db, '0016_sessions');
  await sql`insert into clients (id, name) values (${ADA}, 'Ada'), (${BOB}, 'Bob')`.execute(db);
  await sql`insert into client_memberships values
    (${ADA}, 'ada', 'viewer'), (${ADA}, 'both', 'viewer'), (${BOB}, 'both', 'viewer')`.execute(db);
  await add(ADA, 3);
  await migrate(db);
});
afterAll(() => db.destroy());

const add = (client: string, count: number) => {
  const first = added;
  added += count;
  return sql`insert into containers (id, site_id, client_id, status, manifest)
    select gen_random_uuid(), 'site-' || n, ${client}::uuid, 'active', '{}'
    from generate_series(${first + 1}::integer, ${added}::integer) as n`.execute(db);
};

/** Compares the counts of each caller with a count of the rows themselves. */
async function expectExact(): Promise<void> {
  for (const caller of CALLERS) {
    const { rows } =
      await sql`select status, health, suspended, state_name as state, count(*)::integer as count from containers
      join client_memberships using (client_id) where subject = ${caller.subject}
      group by 1, 2, 3, 4 order by 1, 2, 3, 4`.execute(db);
    const counted = await countContainers(db, { caller });
    const order = ({ status, health, suspended, state }: (typeof counted)[number]) =>
      `${status} ${health} ${suspended} ${state}`;
    expect(counted.toSorted((a, b) => (order(a) < order(b) ? -1 : 1))).toEqual(rows);
  }
}

test('the counts are exact after an upgrade and after each change, whether or not they are folded', async () => {
  await expectExact();
  const changes = [
    () => add(BOB, 4),
    () => sql`update containers set status = 'verified' where site_id in ('site-1', 'site-4')`.execute(db),
    () => sql`update containers set health = 'degraded' where client_id = ${BOB}`.execute(db),
    () =>
      sql`update containers set state = '{"name": "off"}' where site_id in ('site-1', 'site-5')`.execute(db),
    () => sql`update containers set manifest = '{"suspend": true}' where site_id = 'site-2'`.execute(db),
    () => sql`update containers set client_id = ${ADA} where site_id = 'site-5'`.execute(db),
    () => sql`update containers set updated_at = now()`.execute(db),
    () => sql`delete from containers where site_id in ('site-3', 'site-6')`.execute(db),
    () => sql`update containers set status = 'removed'`.execute(db),
  ];
  for (const [index, change] of changes.entries()) {
    await change();
    await expectExact();
    if (index % 3 !== 0) continue;
    await foldCounts(db);
    await expectExact();
  }
});

test('a change that was rolled back doesn’t count', async () => {
  const change = db.transaction().execute(async (trx) => {
    await sql`update containers set status = 'failed'`.execute(trx);
    throw new Error('no');
  });
  await expect(change).rejects.toThrow('no');
  await expectExact();
});

test('a fold makes one row of each count, and no row of a count that is zero', async () => {
  const rows = async () =>
    (await sql`select status, containers::integer from container_counts order by status`.execute(db)).rows;
  await sql`delete from containers`.execute(db);
  await add(ADA, 3);
  await sql`update containers set status = 'verified'`.execute(db);
  await sql`update containers set status = 'removed'`.execute(db);
  await foldCounts(db);
  expect(await rows()).toEqual([{ status: 'removed', containers: 3 }]);
  await foldCounts(db);
  expect(await rows()).toEqual([{ status: 'removed', containers: 3 }]);
});
