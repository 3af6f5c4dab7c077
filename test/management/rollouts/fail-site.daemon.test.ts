import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  failSite,
  findRollout,
  insertRollout,
  moveSite,
  rolloutSites,
} from '../../../management/rollouts/rollouts.repository.ts';
import { creation, World } from '../../support/management/world.ts';

let world: World;
let container: { id: string; siteId: string };
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  const body = creation(await world.client());
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  await world.stop(); // its runner would take the rollout
});
afterAll(() => world?.close());

test('a failure stops the rollout, but not if the site’s state has changed since the read', async () => {
  const { db } = world;
  const made = await insertRollout(
    db,
    { image: 'registry.example/gtm', waves: '[1]', watch_seconds: 0, actor: '{}', request_id: 'x' },
    [{ site_id: container.siteId, container_id: container.id }],
  );
  const id = made?.id ?? '';
  const site = async () => (await rolloutSites(db, id))[0] ?? expect.fail('the rollout has no site');
  const failure = { reason: 'host_failed', detail: 'no image' } as const;
  const now = async () => [(await findRollout(db, id))?.status, (await site()).state];

  await moveSite(db, await site(), { state: 'changing' });
  const read = await site();
  await moveSite(db, read, { state: 'swapped' }); // as another process would
  expect([await failSite(db, read, failure, 'why'), ...(await now())]).toEqual([false, 'running', 'swapped']);

  await moveSite(db, await site(), { state: 'changing' });
  expect([await failSite(db, await site(), failure, 'why'), ...(await now())]).toEqual([
    true,
    'stopping',
    'failed',
  ]);
  expect(await findRollout(db, id)).toMatchObject({ reason: 'site_failed', detail: 'why' });
});
