import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Stage, stage } from '../support/faults/stage.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';
import { creation, World } from '../support/management/world.ts';
import { signal } from '../support/signal.ts';

/**
 * Management with a real provisioner whose process is stopped. When it continues, it gets the requests that were sent
 * meanwhile.
 */
let on: Stage;
let daemon: RunningDaemon;
let world: World;
let client: string;
let count = 0;

beforeAll(async () => {
  on = await stage();
  daemon = await on.start();
  const { secret } = on.settings();
  world = await World.open({
    bare: on.sitesRepo,
    daemon: { url: daemon.url, secret },
    settings: { ageRecipient: on.recipient },
    answerMs: 1_000,
  });
  client = await world.client();
});
afterAll(async () => {
  await world?.close();
  await daemon?.kill();
  await on?.close();
});
beforeEach(() => {
  count += 1;
  signal(daemon.pid, 'SIGSTOP');
});
afterEach(() => signal(daemon.pid, 'SIGCONT'));

const create = (extra: object = {}) =>
  world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, `hung${count}.example`, { name: `Hung ${count}`, ...extra }),
    headers: { 'idempotency-key': `hung-${count}` },
  });
const becomes = (id: string, status: string) =>
  eventually(
    async () => {
      const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
      expect(body).toMatchObject({ status });
    },
    { timeoutMs: 60_000 },
  );
const subjects = async (site: string) => (await world.repo.history(site)).map(({ subject }) => subject);
const reasonOf = async (site: string) =>
  (await daemon.sites()).sites.find((status) => status.site === site)?.reason;

test('a creation that a hung provisioner doesn’t answer is 202, and completes when the provisioner continues', async () => {
  const made = await create();
  expect([made.status, made.body.status]).toEqual([202, 'provisioning']);
  signal(daemon.pid, 'SIGCONT');
  await becomes(made.body.id, 'active');
  const again = await create();
  expect([again.status, again.body.id]).toEqual([202, made.body.id]);
  expect(await subjects(made.body.siteId)).toEqual([`Create ${made.body.siteId}`]);
});

test('a late request doesn’t undo the tombstone of a container that was removed meanwhile', async () => {
  const { body } = await create();
  const { siteId: site } = body;
  const removed = await world.call('DELETE', `/server-containers/${body.id}`, { as: 'owner' });
  expect([removed.status, removed.body.status]).toEqual([202, 'deprovisioning']);
  signal(daemon.pid, 'SIGCONT');
  await becomes(body.id, 'removed');
  expect(await subjects(site)).toEqual([`Remove ${site}`, `Create ${site}`]);
  expect(await reasonOf(site)).toBe('Removed');
  // Another container can get the removed one's domain and ports, but not by the same idempotency key.
  const next = await create({ name: `Next ${count}` });
  expect([next.status, next.body.code]).toEqual([422, 'idempotency_key_reused']);
  const other = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, `hung${count}.example`),
  });
  expect(other.status).toBe(202);
  await becomes(other.body.id, 'active');
});

test('changes and removals are answered without the provisioner', async () => {
  signal(daemon.pid, 'SIGCONT');
  const { body } = await create();
  await becomes(body.id, 'active');
  signal(daemon.pid, 'SIGSTOP');
  const at = `/server-containers/${body.id}`;
  const asked = async (method: 'PATCH' | 'POST' | 'DELETE', url: string, sent?: object) =>
    (await world.call(method, url, { as: 'owner', ...(sent === undefined ? {} : { body: sent }) })).status;
  expect([
    await asked('PATCH', at, { name: 'Renamed' }),
    await asked('POST', `${at}/loader-token`, {}),
    await asked('POST', `${at}/domains`, { domain: `more${count}.example`, webTagId: 'GTM-ABC1234' }),
    await asked('DELETE', `${at}/domains?domain=more${count}.example`),
    await asked('POST', `${at}/custom-domains`, { domain: `m.hung${count}.example` }),
    await asked('DELETE', at),
  ]).toEqual([200, 200, 200, 200, 200, 202]);
  // No answer waited for the provisioner: each request to it is still open.
  expect(world.logs.filter((line) => line.includes('will get the commit at its next poll'))).toEqual([]);
  signal(daemon.pid, 'SIGCONT');
  await becomes(body.id, 'removed');
});
