import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pruneHistory } from '../../management/retention.ts';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let id: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  const body = creation(await world.client());
  ({ id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body);
  await eventually(async () =>
    expect((await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body.status).toBe('active'),
  );
  await world.stop();
  // Seven rows of each kind are 40 days old; the others are from today.
  await sql`insert into audit_log (at, actor, action, request_id)
    select now() - interval '40 days', 'old', 'old', 'old' from generate_series(1, 7)`.execute(world.owner);
  await sql`insert into container_events (at, container_id, kind, status)
    select now() - interval '40 days', ${id}, 'changed', 'active' from generate_series(1, 7)`.execute(
    world.owner,
  );
  await sql`insert into operations (id, container_id, kind, status, step, actor, request_id, updated_at)
    select gen_random_uuid(), ${id}, 'provision', 'succeeded', 'follow', '{}', 'old', now() - interval '40 days'
    from generate_series(1, 7)`.execute(world.owner);
});
afterAll(() => world.close());

const count = async (table: 'audit_log' | 'container_events' | 'operations') => {
  const { rows } = await sql<{ n: number }>`select count(*)::integer as n from ${sql.table(table)}`.execute(
    world.owner,
  );
  return rows[0]?.n ?? 0;
};

test.each([
  ['audit', 'audit_log', 7],
  ['events', 'container_events', 7],
  // A container's newest operation is kept, however old it is: here, the last of the seven rows.
  ['operations', 'operations', 6],
] as const)('rows of %s that are older than the setting are deleted in batches', async (kind, table, old) => {
  const before = await count(table);
  expect(await pruneHistory(world.db, kind, 50, { batch: 3 })).toBe(0);
  expect(await pruneHistory(world.db, kind, 35, { batch: 3 })).toBe(old);
  expect(await count(table)).toBe(before - old);
});

test('the last 30 days can’t be deleted', async () => {
  await expect(pruneHistory(world.db, 'audit', 29)).rejects.toThrow('30 days');
});

test('a running API deletes history by its settings, and still shows the newest operation', async () => {
  await sql`insert into audit_log (at, actor, action, request_id)
    values (now() - interval '40 days', 'old', 'old', 'old')`.execute(world.owner);
  Object.assign(world.settings, { retentionDays: { audit: 31, events: 0, operations: 31 } });
  await world.start();
  await eventually(async () => {
    const old = await world.owner.selectFrom('audit_log').selectAll().where('actor', '=', 'old').execute();
    expect(old).toEqual([]);
  });
  const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
  expect(body.operation).toMatchObject({ kind: 'provision', status: 'succeeded' });
});
