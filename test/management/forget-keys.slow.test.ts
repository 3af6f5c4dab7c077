import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepForgetting } from '../../management/containers/forget-keys.ts';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.open();
  const client = await world.client();
  for (const key of ['a', 'b', 'c']) {
    const body = creation(client, `${key}.example`);
    await world.call('POST', '/server-containers', {
      as: 'owner',
      body,
      headers: { 'idempotency-key': key },
    });
  }
});
afterAll(() => world.close());

const age = (key: string, hours: number) =>
  sql`update idempotency_keys set created_at = now() - make_interval(hours => ${hours}) where key = ${key}`.execute(
    world.owner,
  );
const keys = async () =>
  (await world.owner.selectFrom('idempotency_keys').select('key').orderBy('key').execute()).map(
    ({ key }) => key,
  );

test('keys that are over a day old are deleted at the start, and newer ones are kept', async () => {
  await age('a', 25);
  await age('b', 23);
  await world.stop();
  await world.start();
  await eventually(async () => expect(await keys()).toEqual(['b', 'c']));
});

test('old keys are deleted until the signal, also after a failure', async () => {
  const stop = new AbortController();
  const { log } = world.management?.app ?? {};
  if (log === undefined) throw new Error('the API is stopped');
  const running = keepForgetting({ db: world.db, log }, stop.signal, 20);
  await sql`alter table idempotency_keys rename to away`.execute(world.owner);
  await eventually(async () => expect(world.logs.join('')).toContain('can’t be deleted'));
  await sql`alter table away rename to idempotency_keys`.execute(world.owner);
  await age('b', 25);
  await eventually(async () => expect(await keys()).toEqual(['c']));
  stop.abort();
  await running;
});
