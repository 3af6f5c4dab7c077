import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { MemoryDaemon } from '../support/gitops/memory-daemon.ts';
import { provisionedWorld } from '../support/management/provisioned.ts';
import { creation, type World } from '../support/management/world.ts';

let world: World;
let daemon: MemoryDaemon;
let close: () => Promise<void>;
let client: string;
beforeAll(async () => {
  ({ world, daemon, close } = await provisionedWorld({ logLevel: 'silent' }));
  client = await world.client();
});
afterEach(() => {
  daemon.control.before = () => undefined;
  daemon.control.fault = () => undefined;
  release();
});
afterAll(() => close());

/** Lets the provisioner continue. */
let release: () => void = () => undefined;

let count = 0;
async function create(): Promise<{ id: string; operation: string }> {
  const domain = `operation${++count}.example`;
  const body = creation(client, domain, { name: domain });
  const made = await world.call('POST', '/server-containers', { as: 'owner', body });
  expect(made.status).toBe(202);
  return { id: made.body.id, operation: made.body.operation.id };
}
const read = async (id: string, query = '', as = 'viewer') =>
  (await world.call('GET', `/operations/${id}${query}`, { as })).body;
// biome-ignore lint/suspicious/noExplicitAny: the answer's shape is what is tested
const named = (body: any, by: string) => body.steps.filter((step: { by: string }) => step.by === by);

test('an operation shows the steps of management and of the provisioner while they run, and after their end', async () => {
  const held = Promise.withResolvers<void>();
  release = held.resolve;
  const begun = Promise.withResolvers<void>();
  daemon.control.before = ({ target }) => {
    if (target !== 'proxy') return;
    begun.resolve();
    return held.promise;
  };
  const { id, operation } = await create();
  await begun.promise;
  const running = await read(operation);
  expect(running).toMatchObject({
    id: operation,
    containerId: id,
    kind: 'provision',
    status: 'running',
    endedAt: null,
  });
  expect(named(running, 'management')).toMatchObject([
    { name: 'commit', state: 'succeeded' },
    { name: 'provision', state: 'succeeded' },
    { name: 'follow', state: 'running', endedAt: null },
  ]);
  const proxy = named(running, 'provisioner').find(({ name }: { name: string }) => name.includes(' proxy '));
  expect(proxy).toMatchObject({ state: 'running', startedAt: expect.any(String), endedAt: null });

  // The answer comes when the operation ends, not when the waiting time is over.
  const waiting = read(operation, '?wait=30');
  held.resolve();
  const ended = await waiting;
  daemon.control.before = () => undefined;
  expect(ended).toMatchObject({ status: 'succeeded', endedAt: expect.any(String), hostAnswers: true });
  expect(named(ended, 'management').map(({ name }: { name: string }) => name)).toEqual([
    'commit',
    'provision',
    'follow',
  ]);
  const steps = named(ended, 'provisioner');
  expect(steps.length).toBeGreaterThan(2);
  for (const step of steps) {
    expect(step).toMatchObject({
      state: 'succeeded',
      startedAt: expect.any(String),
      endedAt: expect.any(String),
    });
  }
});

test('a request waits no longer than it asks for', async () => {
  const held = Promise.withResolvers<void>();
  release = held.resolve;
  daemon.control.before = () => held.promise;
  const { operation } = await create();
  expect(await read(operation, '?wait=0.2')).toMatchObject({ status: 'running' });
  expect((await world.call('GET', `/operations/${operation}?wait=31`, { as: 'owner' })).status).toBe(400);
  held.resolve();
  daemon.control.before = () => undefined;
  expect(await read(operation, '?wait=30')).toMatchObject({ status: 'succeeded' });
});

test('a step that fails shows why', async () => {
  daemon.control.fault = (target, at) =>
    target === 'route' && at !== 'observe' && at.op === 'create' ? new Error('the edge refuses') : undefined;
  const { operation } = await create();
  const retrying = await read(operation, '?wait=0.5');
  expect(named(retrying, 'provisioner')).toContainEqual(
    expect.objectContaining({ state: 'failed', error: expect.stringContaining('the edge refuses') }),
  );
});

test('the operations of a container are listed, the newest first, to their readers only', async () => {
  const { id, operation } = await create();
  await read(operation, '?wait=30');
  const removed = await world.call('DELETE', `/server-containers/${id}`, { as: 'owner' });
  const removal = removed.body.operation.id;
  expect(await read(removal, '?wait=30')).toMatchObject({ kind: 'deprovision', status: 'succeeded' });
  const list = async (query = '') =>
    (await world.call('GET', `/server-containers/${id}/operations${query}`, { as: 'viewer' })).body;
  const { items, next } = await list();
  expect([items.map((one: { id: string }) => one.id), next]).toEqual([[removal, operation], null]);
  const first = await list('?limit=1');
  expect(first.items).toHaveLength(1);
  expect((await list(`?limit=1&cursor=${first.next}`)).items[0].id).toBe(operation);

  expect((await world.call('GET', `/operations/${operation}`, { as: 'stranger' })).body.code).toBe(
    'unknown_operation',
  );
  expect((await world.call('GET', `/server-containers/${id}/operations`, { as: 'stranger' })).status).toBe(
    404,
  );
});
