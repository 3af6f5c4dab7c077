import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Reason } from '../../gitops/report/report.ts';
import type { Health, SiteStateName } from '../../gitops/report/site-state.ts';
import { SITE_STATES } from '../../gitops/report/site-state.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/management/receiver.ts';
import { creation, World } from '../support/management/world.ts';
import { memoryObjects } from '../support/traffic/memory-objects.ts';
import { batchOf, deliver, recordAt } from '../support/traffic/records.ts';

let world: World;
let receiver: Receiver;
let client: string;
const objects = memoryObjects();
beforeAll(async () => {
  receiver = new Receiver();
  await receiver.start();
  world = await World.open({ logLevel: 'silent', rawObjects: objects });
  client = await world.client();
  const body = { client, url: `${receiver.url}/`, events: ['container.state'] };
  expect((await world.call('POST', '/webhooks', { as: 'owner', body })).status).toBe(201);
});
afterAll(async () => {
  await world.close();
  await receiver.stop();
});

interface Site {
  readonly id: string;
  readonly siteId: string;
}

const post = (path: string, body?: object) =>
  world.call('POST', path, { as: 'owner', ...(body && { body }) });
const read = async ({ id }: Site) =>
  (await world.call('GET', `/server-containers/${id}`, { as: 'viewer' })).body;

let count = 0;
async function start(): Promise<Site> {
  const domain = `state${++count}.example`;
  const answer = await post('/server-containers', creation(client, domain, { name: domain }));
  expect(answer.status).toBe(202);
  return answer.body;
}

async function create(): Promise<Site> {
  const site = await start();
  await eventually(async () => expect((await read(site)).state.name).toBe('serving'));
  return site;
}

async function edit({ siteId }: Site, change: (text: string) => string): Promise<void> {
  await world.repo.commit({
    site: siteId,
    subject: 'By hand',
    author: { name: 'Olga', email: 'olga@example.test' },
    trailers: {},
    edit: (text) => change(text ?? ''),
  });
}

/** Every place that shows the state of a site, and what it shows. */
async function shown(site: Site, name: SiteStateName): Promise<Record<string, unknown>> {
  const list = async (query: string) =>
    (await world.call('GET', `/server-containers?${query}`, { as: 'viewer' })).body.containers;
  const named = (found: { id: string; state: { name: string } }[]) =>
    found.find(({ id }) => id === site.id)?.state.name;
  const { body: counts } = await world.call('GET', '/server-containers/summary', { as: 'viewer' });
  const all: { state: { name: string } }[] = await list('view=summary&limit=200');
  const { body } = await world.call('GET', `/server-containers/${site.id}/events`, { as: 'viewer' });
  const newest = body.events.filter(({ kind }: { kind: string }) => kind === 'state').at(-1);
  const metrics = (await world.management?.app.inject({ url: '/metrics', remoteAddress: '127.0.0.1' }))?.body;
  const sent = receiver.received
    .map((message) => JSON.parse(message.body))
    .filter(({ data }) => data.containerId === site.id)
    .at(-1);
  const same = all.filter(({ state }) => state.name === name).length;
  return {
    container: (await read(site)).state.name,
    health: (await read(site)).health,
    list: named(await list('limit=200')),
    summaries: named(await list('view=summary&limit=200')),
    filter: named(await list(`state=${name}&view=summary&limit=200`)),
    counted: counts.state[name] === same,
    metric: new RegExp(`^tagyard_container_states\\{state="${name}"\\} ${same}$`, 'm').test(metrics ?? ''),
    ...(newest === undefined ? {} : { event: newest.state, webhook: sent?.data.state }),
  };
}

const HEALTH: Partial<Record<SiteStateName, Health>> = {
  failing: 'degraded',
  setting_up: 'unknown',
  removed: 'unknown',
};
const EVERYWHERE = (name: SiteStateName, isFirst: boolean) => ({
  container: name,
  health: HEALTH[name] ?? 'healthy',
  list: name,
  summaries: name,
  filter: name,
  counted: true,
  metric: true,
  ...(isFirst ? {} : { event: name, webhook: name }),
});

/** For each state: how a site gets it, and which states hold besides. */
const REACHED: Readonly<
  Record<SiteStateName, { also: SiteStateName[]; detail: string | null; reach(): Promise<Site> }>
> = {
  setting_up: {
    also: [],
    detail: 'waits for the edge: shop answers with status 404',
    async reach() {
      world.provisioner.edge = { served: false, detail: 'shop answers with status 404' };
      return await start();
    },
  },
  serving: { also: [], detail: null, reach: create },
  paused: {
    also: ['serving'],
    detail: '1 change is pending: dns',
    async reach() {
      const site = await create();
      await post(`/server-containers/${site.id}/suspend`, {});
      world.provisioner.sites.set(site.siteId, {
        reason: 'Suspended',
        message: '1 change is pending: dns',
        health: 'degraded',
      });
      return site;
    },
  },
  off: {
    also: [],
    detail: null,
    async reach() {
      const site = await create();
      expect((await post(`/server-containers/${site.id}/suspend`, { serving: false })).status).toBe(200);
      return site;
    },
  },
  failing: {
    also: [],
    detail: 'Failed: containers processing: exited with code 1',
    async reach() {
      const site = await create();
      const message = 'containers processing: exited with code 1';
      world.provisioner.sites.set(site.siteId, { reason: 'Failed', message });
      return site;
    },
  },
  change_refused: {
    also: ['serving'],
    detail: expect.stringContaining('nmae'),
    async reach() {
      const site = await create();
      await edit(site, (text) => text.replace(/^name:/m, 'nmae:'));
      return site;
    },
  },
  waits_for_dns: {
    also: [],
    detail: null,
    // The resolvers of this world answer nothing: test/integration/dns-domains.test.ts reaches it.
    reach: async () => await create(),
  },
  removed: {
    also: [],
    detail: null,
    async reach() {
      const site = await create();
      const answer = await world.call('DELETE', `/server-containers/${site.id}`, { as: 'owner' });
      expect(answer.status).toBe(202);
      return site;
    },
  },
};

test.each(SITE_STATES.filter((name) => name !== 'waits_for_dns'))(
  'a site that is %s is so in every place',
  async (name) => {
    const { also, detail, reach } = REACHED[name];
    const site = await reach();
    await eventually(async () => {
      const { state } = await read(site);
      expect(state).toEqual({
        name,
        also,
        detail,
        since: expect.any(String),
        sentence: expect.stringMatching(/^[A-Z].*\.$/),
        remedy:
          ['serving', 'setting_up'].includes(name) || state.sentence === 'It is being removed.'
            ? null
            : expect.stringMatching(/\.$/),
      });
      expect(await shown(site, name)).toEqual(EVERYWHERE(name, name === 'setting_up'));
    });
    world.provisioner.edge = { served: true, detail: '' };
  },
);

test('a site is active only after the edge has answered for it, and says what it waits for', async () => {
  world.provisioner.edge = { served: false, detail: 'shop answers with status 404' };
  const site = await start();
  const detail = 'waits for the edge: shop answers with status 404';
  await eventually(async () =>
    expect(await read(site)).toMatchObject({
      status: 'provisioning',
      statusDetail: detail,
      state: { detail },
    }),
  );
  const statuses = async () =>
    (await world.call('GET', `/server-containers/${site.id}/events`, { as: 'viewer' })).body.events
      .filter(({ kind }: { kind: string }) => kind === 'status')
      .map(({ status }: { status: string }) => status);
  expect(await statuses()).toEqual(['provisioning']);
  world.provisioner.edge = { served: true, detail: '' };
  await eventually(async () =>
    expect(await read(site)).toMatchObject({
      status: 'active',
      statusDetail: null,
      state: { name: 'serving' },
    }),
  );
  expect(await statuses()).toEqual(['provisioning', 'active']);
});

test('of several states the first one counts, the others are listed, and each shows again when it is the first', async () => {
  const site = await create();
  const shows = (name: SiteStateName, also: SiteStateName[]) =>
    eventually(async () => expect((await read(site)).state).toMatchObject({ name, also }));
  await edit(site, (text) => text.replace(/^name:/m, 'nmae:'));
  await shows('change_refused', ['serving']);
  world.provisioner.sites.set(site.siteId, { reason: 'Failed', message: 'exited' });
  await shows('failing', ['change_refused']);
  expect((await read(site)).state.detail).toBe('Failed: exited');
  await edit(site, (text) => text.replace(/^nmae:/m, 'name:').concat('suspend: true\n'));
  await shows('failing', ['paused']);
  await edit(site, (text) => text.replace('suspend: true\n', 'serving: false\n'));
  await shows('off', ['failing']);
  world.provisioner.sites.set(site.siteId, { reason: 'Ready', message: '' });
  await shows('off', []);
  await edit(site, (text) => text.replace('serving: false\n', ''));
  await shows('serving', []);
});

test('a refusal that only the host knows is listed behind a fault, and named again after it', async () => {
  const site = await create();
  const refusal = 'UndecryptableConfig: containerConfig is not encrypted to this host';
  const says = (reason: Reason, message: string) =>
    world.provisioner.sites.set(site.siteId, { reason, message, refusal });
  says('UndecryptableConfig', 'containerConfig is not encrypted to this host');
  await eventually(async () =>
    expect((await read(site)).state).toMatchObject({ name: 'change_refused', detail: refusal }),
  );
  says('Retrying', 'containers processing: Docker didn’t answer');
  await eventually(async () =>
    expect((await read(site)).state).toMatchObject({
      name: 'failing',
      also: ['change_refused'],
      detail: 'Retrying: containers processing: Docker didn’t answer',
    }),
  );
  says('UndecryptableConfig', 'containerConfig is not encrypted to this host');
  await eventually(async () =>
    expect((await read(site)).state).toMatchObject({ name: 'change_refused', also: ['serving'] }),
  );
  world.provisioner.sites.set(site.siteId, { reason: 'Ready', message: '' });
  await eventually(async () => expect((await read(site)).state).toMatchObject({ name: 'serving', also: [] }));
});

test('a site of which some servers fail is served, and says what fails from its beginning to its end', async () => {
  const site = await create();
  const message = 'processing server 1 fails its health check';
  world.provisioner.sites.set(site.siteId, { reason: 'Unhealthy', message, partial: true });
  await eventually(async () =>
    expect(await read(site)).toMatchObject({
      state: {
        name: 'serving',
        also: [],
        sentence: 'It is served, but not all of its servers run.',
        remedy: expect.stringMatching(/\.$/),
        detail: `Unhealthy: ${message}`,
      },
      health: 'degraded',
      statusReason: 'host_partial',
      statusDetail: `Unhealthy: ${message}`,
    }),
  );
  world.provisioner.sites.set(site.siteId, { reason: 'Ready', message: '' });
  await eventually(async () =>
    expect(await read(site)).toMatchObject({ state: { name: 'serving', detail: null }, health: 'healthy' }),
  );
  const { body } = await world.call('GET', `/server-containers/${site.id}/events`, { as: 'viewer' });
  expect(body.events.slice(-2)).toMatchObject([
    { kind: 'host', reason: 'host_partial', detail: `Unhealthy: ${message}` },
    { kind: 'host', reason: null, detail: null },
  ]);
});

test('a site whose first manifest the host refuses isn’t only being set up', async () => {
  world.provisioner.edge = { served: false, detail: 'shop answers with status 404' };
  const site = await start();
  const message = 'containerConfig is not encrypted to this host';
  world.provisioner.sites.set(site.siteId, { reason: 'UndecryptableConfig', message });
  await eventually(async () =>
    expect((await read(site)).state).toMatchObject({
      name: 'change_refused',
      also: ['setting_up'],
      sentence: 'Its manifest in git is refused, and it hasn’t been served yet.',
      remedy: 'Correct the site’s file in git.',
      detail: `UndecryptableConfig: ${message}`,
    }),
  );
  world.provisioner.sites.set(site.siteId, { reason: 'Ready', message: '' });
  await eventually(async () => expect((await read(site)).state.name).toBe('setting_up'));
  world.provisioner.edge = { served: true, detail: '' };
});

test('a site that is created or restored isn’t refused while its host only makes progress', async () => {
  const events = async ({ id }: Site) =>
    (await world.call('GET', `/server-containers/${id}/events`, { as: 'viewer' })).body.events;
  const site = await create();
  await world.call('DELETE', `/server-containers/${site.id}`, { as: 'owner' });
  await eventually(async () => expect((await read(site)).status).toBe('removed'));
  world.provisioner.sites.set(site.siteId, { reason: 'Progressing', message: '9 changes' });
  const asked = () => world.provisioner.calls.filter(({ path }) => path === `/sites/${site.siteId}`).length;
  expect((await post(`/server-containers/${site.id}/restore`)).status).toBe(202);
  const before = asked();
  await eventually(() => expect(asked()).toBeGreaterThan(before + 3));
  expect(await read(site)).toMatchObject({ status: 'provisioning', statusReason: null });
  world.provisioner.sites.set(site.siteId, { reason: 'Retrying', message: 'the image can’t be pulled' });
  await eventually(async () =>
    expect(await read(site)).toMatchObject({ statusReason: 'provisioning_failed' }),
  );
  world.provisioner.sites.set(site.siteId, { reason: 'Ready', message: '' });
  await eventually(async () => expect((await read(site)).status).toBe('active'));
  const refused = (await events(site)).filter(({ kind }: { kind: string }) => kind === 'manifest_refused');
  expect(refused).toMatchObject([{ detail: 'the image can’t be pulled' }]);

  world.provisioner.auto = false;
  const created = await start();
  world.provisioner.finish(created.siteId, 'failed', 'Retrying: no room on the disk', 'host');
  world.provisioner.sites.set(created.siteId, { reason: 'Progressing', message: '9 changes' });
  const polled = () =>
    world.provisioner.calls.filter(({ path }) => path === `/sites/${created.siteId}`).length;
  await eventually(() => expect(polled()).toBeGreaterThan(3));
  expect((await events(created)).filter(({ kind }: { kind: string }) => kind === 'manifest_refused')).toEqual(
    [],
  );
  world.provisioner.auto = true;
  world.provisioner.sites.set(created.siteId, { reason: 'Ready', message: '' });
  await eventually(async () => expect((await read(created)).status).toBe('active'));
});

test('a site whose removal its host holds is served in every place, and says what lifts that, until it is removed', async () => {
  const site = await create();
  world.provisioner.auto = false;
  const dir = await world.clone();
  await world.git(dir, 'rm', '--quiet', `${site.siteId}.yaml`);
  await world.git(dir, 'commit', '--quiet', '-m', 'Remove by hand');
  await world.git(dir, 'push', '--quiet', 'origin', 'HEAD:main');
  const message = 'the sites repository has no site of this host; to approve: tagyard approve a3d6';
  const heldRemoval = `Blocked: ${message}`;
  // The host has been asked to remove it.
  await eventually(() => expect(world.provisioner.sites.get(site.siteId)?.reason).toBe('Progressing'));
  world.provisioner.sites.set(site.siteId, { reason: 'Blocked', message, heldRemoval });
  await eventually(async () => {
    expect(await read(site)).toMatchObject({
      status: 'deprovisioning',
      statusReason: 'removal_held',
      statusDetail: heldRemoval,
      state: { name: 'change_refused', also: ['serving'], detail: heldRemoval },
    });
    expect(await shown(site, 'change_refused')).toEqual(EVERYWHERE('change_refused', false));
  });
  world.provisioner.sites.set(site.siteId, { reason: 'Removing', message: '9 changes' });
  await eventually(async () =>
    expect((await read(site)).state).toMatchObject({ name: 'removed', sentence: 'It is being removed.' }),
  );
  world.provisioner.auto = true;
  world.provisioner.finish(site.siteId, 'succeeded');
  world.provisioner.sites.set(site.siteId, { reason: 'Removed', message: '' });
  await eventually(async () => expect((await read(site)).status).toBe('removed'));
});

test('a site isn’t called healthy while its host reports nothing, and says since when', async () => {
  const begun = Date.now();
  const [well, failing] = [await create(), await create()];
  world.provisioner.sites.set(failing.siteId, { reason: 'Failed', message: 'exited' });
  await eventually(async () => expect((await read(failing)).state.detail).toBe('Failed: exited'));
  world.provisioner.isHung = true;
  const since = 'its host has reported nothing since ';
  await eventually(async () => {
    expect(await read(well)).toMatchObject({
      health: 'unknown',
      statusReason: 'host_silent',
      state: { name: 'serving', sentence: 'It was served when its host last reported.' },
    });
    expect(await read(failing)).toMatchObject({ health: 'degraded', statusReason: 'host_trouble' });
  });
  const metrics = await world.management?.app.inject({ url: '/metrics', remoteAddress: '127.0.0.1' });
  expect(metrics?.body).toMatch(/^tagyard_containers_silent [1-9]/m);
  const { detail } = (await read(well)).state;
  expect(detail).toMatch(since);
  expect(Date.parse(detail.slice(since.length))).toBeGreaterThan(begun);
  expect((await read(failing)).state.detail).toBe(`Failed: exited; ${detail}`);
  expect(await shown(well, 'serving')).toMatchObject({ container: 'serving', counted: true, metric: true });
  world.provisioner.sites.delete(well.siteId);
  world.provisioner.sites.set(failing.siteId, { reason: 'Progressing', message: '1 change' });
  world.provisioner.isHung = false;
  await eventually(async () => {
    expect(await read(well)).toMatchObject({
      health: 'healthy',
      statusReason: null,
      state: { detail: null },
    });
    expect(await read(failing)).toMatchObject({ health: 'degraded', state: { detail: 'Failed: exited' } });
  });
});

test('the first visit is seen in the requests: neither a verification nor a probe nor a bot is one', async () => {
  const { id } = await create();
  const at = new Date(Date.now() - 60_000).toISOString();
  const boot = { container: id, route: '/boot', method: 'POST' };
  const deliverAll = (records: readonly object[]) =>
    deliver(objects, batchOf(records.map((fields) => recordAt(at, { ...boot, ...fields }))));
  await deliverAll([
    { probe: true },
    { bot: true },
    { status: 404, error: 'unknown_site' },
    { route: '/l/:token.js' },
  ]);
  const requests = async () => {
    const { body } = await world.call('GET', `/server-containers/${id}/traffic?probes=1`, { as: 'viewer' });
    return body.points.reduce((sum: number, point: { requests: number }) => sum + point.requests, 0);
  };
  await eventually(async () => expect(await requests()).toBe(4));
  expect((await read({ id, siteId: '' })).firstVisitAt).toBeNull();
  await deliverAll([{}]);
  await eventually(async () => expect((await read({ id, siteId: '' })).firstVisitAt).toBe(at));
});
