import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/management/listen.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let ours: string;
let theirs: string;
/** A container of each of the two clients. */
let own: string;
let foreign: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  ours = await world.client('Ours');
  const body = { name: 'Theirs', members: [{ subject: 'other', role: 'owner' }] };
  theirs = (await world.call('POST', '/clients', { as: 'root', body })).body.id;
  own = await created(ours, 'owner', 'ours.example');
  foreign = await created(theirs, 'other', 'theirs.example');
});
afterAll(() => world.close());
beforeEach(async () => void (await world.listen()));
afterEach(async () => {
  await world.stop();
  await world.start();
});

async function created(client: string, as: string, domain: string): Promise<string> {
  const body = creation(client, domain, { name: domain });
  const { id } = (await world.call('POST', '/server-containers', { as, body })).body;
  await eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${id}`, { as });
    expect([body.status, body.health]).toEqual(['active', 'healthy']);
  });
  return id;
}

const rename = async (id: string, as: string, name: string) => {
  const { status } = await world.call('PATCH', `/server-containers/${id}`, { as, body: { name } });
  expect(status).toBe(200);
};
const events = async (as: string, query = '') => (await world.call('GET', `/events${query}`, { as })).body;
const feed = async (as: string, headers: Record<string, string> = {}, query = '') =>
  listen(`${await world.listen()}/events${query}`, {
    authorization: `Bearer ${await world.issuer.token(as)}`,
    ...headers,
  });
const reported = (text: string) => [...text.matchAll(/"containerId":"([^"]+)"/g)].map(([, id]) => id);

test('a list has the events of what the caller may read, in pages, the newest or the oldest first', async () => {
  const all = (await events('owner', '?limit=200')).items;
  expect(new Set(all.map(({ clientId }: { clientId: string }) => clientId))).toEqual(new Set([ours]));
  expect(
    (await events('other')).items.every((one: { containerId: string }) => one.containerId === foreign),
  ).toBe(true);
  expect(await events('stranger')).toEqual({ items: [], next: null });

  const pages: string[] = [];
  for (let next: string | null = ''; next !== null; ) {
    const page = await events('owner', `?limit=2&sort=id${next === '' ? '' : `&cursor=${next}`}`);
    pages.push(...page.items.map(({ id }: { id: string }) => id));
    next = page.next;
  }
  expect(pages).toEqual(all.map(({ id }: { id: string }) => id).reverse());
});

test('a list filters by client, container and kind, and refuses those of others', async () => {
  const kinds = async (query: string) =>
    (await events('owner', query)).items.map(({ kind }: { kind: string }) => kind);
  expect(new Set(await kinds(`?container=${own}&kind=status`))).toEqual(new Set(['status']));
  expect((await kinds(`?client=${ours}`)).length).toBeGreaterThan(2);
  expect((await world.call('GET', `/events?client=${theirs}`, { as: 'owner' })).body.code).toBe(
    'unknown_client',
  );
  expect((await world.call('GET', `/events?container=${foreign}`, { as: 'owner' })).body.code).toBe(
    'unknown_container',
  );
});

test('a stream has what happens from now on to all containers of the caller, and resumes after an event', async () => {
  const first = await feed('owner');
  await eventually(() => expect(first.text()).toContain('retry'));
  await rename(foreign, 'other', 'Not for us');
  await rename(own, 'owner', 'For us');
  await eventually(() => expect(first.kinds()).toEqual(['changed']));
  expect(reported(first.text())).toEqual([own]);
  first.stop.abort();
  await first.reading;

  await rename(own, 'owner', 'Meanwhile');
  await rename(own, 'owner', 'Meanwhile, again');
  const second = await feed('owner', { 'last-event-id': first.lastId() });
  await eventually(() => expect(second.kinds()).toEqual(['changed', 'changed']));
  await rename(own, 'owner', 'Afterwards');
  await eventually(() => expect(second.kinds()).toHaveLength(3));
  expect(second.ids()).toEqual(second.ids().toSorted((a, b) => Number(a) - Number(b)));
  second.stop.abort();
});

test('an open stream reports a client’s events from the start of a membership to its end', async () => {
  await world.call('PUT', `/clients/${ours}/members/guest`, { as: 'root', body: { role: 'viewer' } });
  const stream = await feed('guest');
  const ofTheirs = await feed('other', {}, `?client=${theirs}`);
  await rename(own, 'owner', 'One');
  await eventually(() => expect(reported(stream.text())).toEqual([own]));

  await world.call('PUT', `/clients/${theirs}/members/guest`, { as: 'root', body: { role: 'viewer' } });
  await eventually(async () => {
    await rename(foreign, 'other', `Two ${Math.random()}`);
    expect(reported(stream.text())).toContain(foreign);
  });

  await world.call('DELETE', `/clients/${ours}/members/guest`, { as: 'root' });
  // From now on, the stream reports only the other client.
  await eventually(async () => {
    const before = reported(stream.text()).length;
    await rename(own, 'owner', `Three ${Math.random()}`);
    await rename(foreign, 'other', `Three ${Math.random()}`);
    await eventually(() => expect(reported(stream.text()).slice(before)).toContain(foreign));
    expect(reported(stream.text()).slice(before)).not.toContain(own);
  });
  // A stream of one client ends with the membership in that client.
  await world.call('PUT', `/clients/${theirs}/members/owner`, { as: 'root', body: { role: 'owner' } });
  await world.call('DELETE', `/clients/${theirs}/members/other`, { as: 'root' });
  await ofTheirs.reading;
  expect(stream.stop.signal.aborted).toBe(false);
  stream.stop.abort();
});

test('an organisation’s members see the events of its clients', async () => {
  const organisation = (await world.call('POST', '/organisations', { as: 'root', body: { name: 'Agency' } }))
    .body.id;
  await world.call('PATCH', `/clients/${ours}`, { as: 'root', body: { organisation } });
  const stream = await feed('staff');
  const body = { role: 'viewer' };
  await world.call('PUT', `/organisations/${organisation}/members/staff`, { as: 'root', body });
  await eventually(async () => {
    await rename(own, 'owner', `Agency ${Math.random()}`);
    expect(reported(stream.text())).toContain(own);
  });
  expect((await events('staff')).items[0].clientId).toBe(ours);
  stream.stop.abort();
});

test('the limit of a subject counts streams of all containers and streams of one container together', async () => {
  const { limits } = world.settings;
  Object.assign(limits, { streamsPerSubject: 1 });
  const stream = await feed('viewer');
  for (const path of ['/events', `/server-containers/${own}/events`]) {
    const refused = await world.call('GET', path, { as: 'viewer', headers: { accept: 'text/event-stream' } });
    expect(refused.body.code).toBe('too_many_streams');
  }
  Object.assign(limits, { streamsPerSubject: 1e9 });
  stream.stop.abort();
});

test('the events of one container are read page by page, the newest page first', async () => {
  const read = async (query: string) =>
    (await world.call('GET', `/server-containers/${own}/events${query}`, { as: 'owner' })).body;
  const all = await read('');
  expect(all.next).toBeNull();
  const ids = [];
  for (let next: string | null = ''; next !== null; ) {
    const page = await read(`?limit=2${next === '' ? '' : `&cursor=${next}`}`);
    ids.unshift(...page.events.map(({ id }: { id: string }) => id));
    next = page.next;
  }
  expect(ids).toEqual(all.events.map(({ id }: { id: string }) => id));
  expect(ids.length).toBeGreaterThan(2);
});
