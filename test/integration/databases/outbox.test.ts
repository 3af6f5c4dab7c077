import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { type DatabaseUrls, PostgresqlFixture } from '../../support/management/postgresql.ts';
import { ManagementProcesses } from '../../support/management/processes.ts';
import { Receiver } from '../../support/management/receiver.ts';
import { creation, World } from '../../support/management/world.ts';

const CONTAINERS = 20;
const EVENTS = 20;
/** Messages that one process sends at once to one webhook. */
const IN_FLIGHT = 8;

describeWith('postgresql', 'events and webhooks of several processes on one database', () => {
  let postgresql: PostgresqlFixture;
  let urls: DatabaseUrls;
  let world: World;
  let receiver: Receiver;
  let client: string;
  beforeAll(async () => {
    receiver = new Receiver();
    await receiver.start();
    postgresql = await PostgresqlFixture.start();
    const connections = await postgresql.connections();
    ({ urls } = connections);
    world = await World.open({ ...connections, logLevel: 'silent' });
    client = await world.client();
    const body = creation(client);
    const { id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
    await eventually(async () => {
      const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
      expect([body.status, body.health]).toEqual(['active', 'healthy']);
    });
    await sql`insert into containers (id, site_id, client_id, status, manifest)
      select gen_random_uuid(), 'copy-' || n, client_id, 'failed', manifest
      from generate_series(2, ${CONTAINERS}::integer) as n, containers`.execute(world.owner);
  });
  afterAll(async () => {
    await world?.close();
    await postgresql?.stop();
    await receiver?.stop();
  });

  const containers = async () =>
    (await world.owner.selectFrom('containers').select('id').execute()).map(({ id }) => id);

  test('a reader of a newer event doesn’t miss an event whose transaction was committed later', async () => {
    const [slow = '', fast = ''] = await containers();
    const written = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const late = world.owner.transaction().execute(async (trx) => {
      await sql`insert into container_events (container_id, kind, status) values (${slow}, 'changed', 'active')`.execute(
        trx,
      );
      written.resolve();
      await held.promise;
    });
    await written.promise;
    await sql`insert into container_events (container_id, kind, status) values (${fast}, 'host', 'active')`.execute(
      world.owner,
    );
    const read = async (query: string) =>
      (await world.call('GET', `/events?${query}`, { as: 'owner' })).body.items;
    const [newest] = await read('limit=1');
    expect(newest.containerId).toBe(fast);
    held.resolve();
    await late;
    expect(await read(`sort=id&cursor=${newest.id}`)).toMatchObject([{ containerId: slow, kind: 'changed' }]);
  });

  /** Adds the same number of events to each container, alternating between them. Resolves to the number of all. */
  async function happen(): Promise<number> {
    await sql`insert into container_events (container_id, kind, status)
      select id, 'changed', 'active' from containers, generate_series(1, ${EVENTS}::integer) as n
      order by n, id`.execute(world.owner);
    return CONTAINERS * EVENTS;
  }

  async function hook(): Promise<void> {
    receiver.received.length = 0;
    receiver.overlaps.clear();
    await world.owner.deleteFrom('webhooks').execute();
    const body = { clientId: client, url: `${receiver.url}/`, events: ['container.changed'] };
    expect((await world.call('POST', '/webhooks', { as: 'owner', body })).status).toBe(201);
  }

  /** By container: the ids of its events in the order of their first arrival. */
  function arrived(): Map<string, number[]> {
    const ids = new Map<string, number[]>();
    for (const { body } of receiver.received) {
      const { id, containerId } = JSON.parse(body).data;
      const known = ids.get(containerId) ?? [];
      if (!known.includes(Number(id))) ids.set(containerId, [...known, Number(id)]);
    }
    return ids;
  }

  function expectAll(): void {
    expect(arrived().size).toBe(CONTAINERS);
    for (const ids of arrived().values()) {
      expect(ids).toHaveLength(EVENTS);
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    }
    expect(new Set(receiver.overlaps.values())).toEqual(new Set([1]));
  }

  const isDone = () =>
    eventually(
      async () => {
        const { rows } = await sql<{ n: number }>`
          select count(*)::integer as n from webhook_deliveries where status = 'pending'`.execute(
          world.owner,
        );
        expect(rows[0]?.n).toBe(0);
      },
      { timeoutMs: 60_000 },
    );

  test('three processes send each message once, and those of one container in order', async () => {
    await hook();
    await world.stop();
    const count = await happen();
    const processes = await ManagementProcesses.start(3, { world, urls });
    await isDone();
    expectAll();
    expect(receiver.received).toHaveLength(count);
    expect(await processes.stop()).toBe(0);
    await world.start();
  });

  test('a process that is killed in the middle loses nothing, and repeats only what it was sending', async () => {
    await hook();
    await world.stop();
    const count = await happen();
    const first = await ManagementProcesses.start(1, { world, urls });
    await eventually(() => expect(receiver.received.length).toBeGreaterThan(count / 4), { intervalMs: 2 });
    await first.kill();
    expect(receiver.received.length).toBeLessThan(count);
    // As if its leases had expired.
    await sql`update webhook_queues set due_at = now() where lease is not null`.execute(world.owner);
    const second = await ManagementProcesses.start(1, { world, urls });
    await isDone();
    expectAll();
    expect(receiver.received.length).toBeLessThanOrEqual(count + IN_FLIGHT);
    await second.stop();
    await world.start();
  });
});
