import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../base/clock.ts';
import type { SagaStep } from '../../../management/lifecycle/steps.ts';
import type { StepFunction } from '../../../management/operations/outcome.ts';
import { Runner } from '../../../management/operations/runner.ts';
import { moveOperation } from '../../../management/records/operations.repository.ts';
import { creation, World } from '../../support/management/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.open();
  await world.stop();
  await world.start({ follow: false });
});
afterAll(() => world?.close());

test('continues where another process has moved an operation, and logs only its own moves', async () => {
  const body = creation(await world.client());
  await world.call('POST', '/server-containers', { as: 'owner', body });
  const operation = await world.db.selectFrom('operations').selectAll().executeTakeFirstOrThrow();
  expect(operation).toMatchObject({ step: 'follow', status: 'running' });
  const wait: StepFunction = async () => 'wait';
  const steps: Record<SagaStep, StepFunction> = {
    commit: wait,
    provision: wait,
    withdraw: wait,
    clean: wait,
    async follow(from) {
      await moveOperation(world.db, from, { step: 'tombstone' }); // as another process would
      return { to: 'succeeded' };
    },
    tombstone: async () => ({ to: 'clean' }),
  };
  const log = world.management?.app.log;
  if (log === undefined) throw new Error('the API is stopped');
  world.logs.length = 0;
  const { db, settings } = world;
  await new Runner({ db, log, settings, clock: systemClock }, steps).settle(operation);
  const moves = world.logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'operation moved');
  expect(moves.map(({ from, to }) => [from, to])).toEqual([['tombstone', 'clean']]);
});
