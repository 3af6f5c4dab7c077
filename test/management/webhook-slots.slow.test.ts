import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/management/receiver.ts';
import { World } from '../support/management/world.ts';
import { movableClock } from '../support/movable-clock.ts';

const clock = movableClock();
const receiver = new Receiver();
let world: World;
beforeAll(async () => {
  await receiver.start();
  world = await World.open({ logLevel: 'silent', clock });
});
afterAll(async () => {
  await world.close();
  await receiver.stop();
});

async function webhook(clientId: string, path: string): Promise<string> {
  const body = { clientId, url: `${receiver.url}${path}` };
  return (await world.call('POST', '/webhooks', { as: 'owner', body })).body.id;
}
const uuids = (count: number) => Array.from({ length: count }, () => randomUUID());

/** Queues a message in each of these queues; the earlier ones are due earlier. Resolves to the messages' ids. */
async function queue(webhookId: string, queues: readonly string[]): Promise<string[]> {
  return await world.owner.transaction().execute(async (trx) => {
    const ids: string[] = [];
    for (const one of queues) {
      const { id } = await trx
        .insertInto('webhook_deliveries')
        .values({ webhook_id: webhookId, queue: one, kind: 'test', position: '0' })
        .returning('id')
        .executeTakeFirstOrThrow();
      await sql`select queue_delivery(${id}::uuid)`.execute(trx);
      ids.push(`msg_test_${id}`);
    }
    for (const [index, one] of queues.entries()) {
      await sql`update webhook_queues set due_at = now() - ${queues.length - index}::integer * interval '1 second'
        where webhook_id = ${webhookId} and queue = ${one} and due_at = now()`.execute(trx);
    }
    return ids;
  });
}

const at = (path: string) => receiver.received.filter((one) => one.path === path);

test('slow receivers of one client don’t delay what is sent to others', async () => {
  receiver.answer = ({ path }) => (path === '/slow' ? null : 204);
  const slow = await world.client('Slow');
  for (let index = 0; index < 5; index += 1) await queue(await webhook(slow, '/slow'), uuids(8));
  await eventually(() => expect(at('/slow').length).toBeGreaterThanOrEqual(8));
  const other = await webhook(await world.client('Other'), '/other');
  expect((await world.call('POST', `/webhooks/${other}/test`, { as: 'owner' })).status).toBe(202);
  await eventually(() => expect(at('/other')).toHaveLength(1));
  expect(at('/slow')).toHaveLength(8);
});

test('a long queue is interrupted for the others that are due', async () => {
  receiver.answer = ({ path }) => {
    if (path === '/held') return null;
    if (path === '/long') clock.advance(31_000);
    return 204;
  };
  const client = await world.client('Long');
  // These hold seven of the client's eight sending slots.
  await queue(await webhook(client, '/held'), uuids(7));
  await eventually(() => expect(at('/held')).toHaveLength(7));
  const [long, short] = uuids(2) as [string, string];
  const [first, second, last] = await queue(await webhook(client, '/long'), [long, short, long]);
  await eventually(() => expect(at('/long')).toHaveLength(3));
  expect(at('/long').map(({ headers }) => headers['webhook-id'])).toEqual([first, second, last]);
});

test('while a thousand deliveries of a webhook wait, callers can’t add any', async () => {
  receiver.answer = () => 204;
  const id = await webhook(await world.client('Many'), '/many');
  const send = (path: string) => world.call('POST', `/webhooks/${id}/${path}`, { as: 'owner' });
  const { body: tested } = await send('test');
  await eventually(() => expect(at('/many')).toHaveLength(1));
  await sql`insert into webhook_deliveries (webhook_id, queue, kind, position)
    select ${id}, ${randomUUID()}::uuid, 'test', 0 from generate_series(1, 1000)`.execute(world.owner);
  for (const path of ['test', 'test?dryRun=1', `deliveries/${tested.id}/replay`]) {
    const { status, body } = await send(path);
    expect([status, body.code]).toEqual([409, 'limit_reached']);
  }
  await sql`delete from webhook_deliveries where id =
    (select id from webhook_deliveries where webhook_id = ${id} and status = 'pending' limit 1)`.execute(
    world.owner,
  );
  expect((await send('test')).status).toBe(202);
});
