import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { provisionedWorld } from '../support/management/provisioned.ts';
import { creation, type World } from '../support/management/world.ts';

let world: World;
let close: () => Promise<void>;
let id: string;
let operation: string;
beforeAll(async () => {
  const parts = await provisionedWorld({ logLevel: 'silent' });
  ({ world, close } = parts);
  const { daemon } = parts;
  const client = await world.client();
  const members = [{ subject: 'other', role: 'owner' }];
  const theirs = await world.call('POST', '/clients', { as: 'root', body: { name: 'Theirs', members } });
  // Names that are also keys and values of the answers.
  for (const name of ['State', 'Message', 'Applied', 'Succeeded']) {
    const body = creation(theirs.body.id, `${name.toLowerCase()}.example`, { name });
    const { body: made } = await world.call('POST', '/server-containers', { as: 'other', body });
    expect(made.siteId).toBe(name.toLowerCase());
  }
  daemon.control.fault = (target, at) =>
    target === 'proxy' && at !== 'observe' && at.site === 'acme-shop'
      ? new Error('in use by\nstate')
      : undefined;
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  id = made.body.id;
  expect(made.body.siteId).toBe('acme-shop');
  operation = made.body.operation.id;
});
afterAll(() => close());

test('names of others are replaced in texts of an operation’s steps, not in its keys and states', async () => {
  await eventually(async () => {
    const { status, body } = await world.call('GET', `/operations/${operation}`, { as: 'viewer' });
    expect(status).toBe(200);
    const steps = body.steps.filter(({ by }: { by: string }) => by === 'provisioner');
    expect(steps).toContainEqual(
      expect.objectContaining({ state: 'failed', error: expect.stringMatching(/by\n\(another site\)/) }),
    );
    expect(steps).toContainEqual(expect.objectContaining({ state: 'succeeded' }));
  });
});

test('names of others are replaced in texts of resources, not in their keys and states', async () => {
  await eventually(async () => {
    const answer = await world.call('GET', `/server-containers/${id}/resources`, { as: 'viewer' });
    expect(answer.status).toBe(200);
    const { message, targets } = answer.body;
    expect(message).toMatch(/by\n\(another site\)/);
    expect(JSON.stringify(answer.body)).not.toMatch(/\\nstate/);
    expect(targets).toContainEqual(expect.objectContaining({ state: 'applied' }));
    const { resources } = targets.find(({ target }: { target: string }) => target === 'proxy');
    expect(resources).toMatchObject([{ detail: expect.stringContaining('by\n(another site)') }]);
  });
});
