import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ContainerLogs } from '../../gitops/container-logs/container-logs.ts';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/management/listen.ts';
import { creation, World } from '../support/management/world.ts';

const TRACE = '0b1f7f5e-6f0e-4f0c-9a52-3a3d0c8f2d11';

let world: World;
let store: ContainerLogs;
let dir: string;
let client: string;
let container: string;
let site: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-container-logs-'));
  const log = { warn: (_fields: object, message: string) => expect.fail(message) };
  store = new ContainerLogs({ dir, kept: 'all', keepDays: 7, megabytes: 1, linesPerSecond: 1_000, log });
  await store.open();
  world = await World.open({ logLevel: 'silent' });
  world.provisioner.containerLogs = store;
  client = await world.client();
  const { body } = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  container = body.id;
  site = body.siteId;
}, 120_000);
afterAll(async () => {
  await world.close();
  await store.close();
  await rm(dir, { recursive: true });
});

const print = async (...texts: string[]) => {
  const time = new Date().toISOString();
  const lines = texts.map((text) => ({ stream: 'stdout' as const, time, text, position: null }));
  await store.write({ site, id: 'one', place: 'processing/0' }, lines);
};
const tag = (EventName: string, TraceId = TRACE) =>
  JSON.stringify({ Name: 'GA4', Type: 'Message', TraceId, EventName });
const call = async (query = '', as = 'viewer') =>
  await world.call('GET', `/server-containers/${container}/container-logs${query}`, { as });
const texts = (body: { logs: { message: string | null; eventName: string | null }[] }) =>
  body.logs.map(({ message, eventName }) => message ?? eventName);

test('a viewer searches the lines of a container, page by page; strangers see nothing', async () => {
  expect((await call()).body).toEqual({ logs: [], next: null, since: null });
  await print('one', tag('purchase'), 'two');
  const first = await call('?limit=2');
  expect(first.status).toBe(200);
  expect(texts(first.body)).toEqual(['two', 'purchase']);
  expect(first.body.logs[1]).toEqual({
    ...{ id: '2', time: first.body.logs[1].time, source: 'processing/0', stream: 'stdout', level: 'info' },
    ...{ kind: 'tag', requestId: TRACE, name: 'GA4', type: 'Message', eventName: 'purchase' },
    ...{ requestMethod: null, requestUrl: null, responseStatusCode: null },
    ...{ message: null, permission: null, dropped: null },
  });
  const { next } = first.body;
  expect((await call(`?limit=2&cursor=${next}`)).body).toMatchObject({ logs: [{ id: '1' }], next: null });
  expect(texts((await call(`?requestId=${TRACE}`)).body)).toEqual(['purchase']);
  expect(texts((await call('?q=TWO')).body)).toEqual(['two']);
  expect((await call('', 'stranger')).body.code).toBe('unknown_container');
  expect((await call('/live', 'stranger')).body.code).toBe('unknown_container');
  for (const query of [
    '?limit=0',
    '?cursor=none',
    '?level=loud',
    '?requestId=ada',
    '?from=2026-01-01T00:00:00Z',
    '?from=9999-01-01T00:00:00Z',
  ]) {
    expect((await call(query)).body.code, query).toBe('invalid_request');
  }
});

test('streams resume after a given line and after an absence of the host, and end with the membership', async () => {
  await world.call('PUT', `/clients/${client}/members/guest`, { as: 'root', body: { role: 'viewer' } });
  const follow = async (query = '', headers: Record<string, string> = {}, as = 'viewer') => {
    const url = `${await world.listen()}/server-containers/${container}/container-logs/live${query}`;
    const token = await world.issuer.token(as);
    const stream = await listen(url, { authorization: `Bearer ${token}`, ...headers });
    await eventually(() => expect(stream.text()).toContain('retry'));
    return stream;
  };
  const all = await follow();
  const tags = await follow('?kind=tag');
  const again = await follow('', { 'last-event-id': '2' });
  const lost = await follow('', { 'last-event-id': '999' });
  await eventually(() => expect(again.ids()).toEqual(['3']));
  await eventually(() => expect(lost.text()).toContain('event: gap\ndata: {"missed":null}'));
  await print('three', tag('scroll'));
  await eventually(() => expect(tags.ids()).toEqual(['5']));
  await eventually(() => expect(all.ids()).toEqual(['4', '5']));
  await eventually(() => expect(again.ids()).toEqual(['3', '4', '5']));
  await eventually(() => expect(lost.ids()).toEqual(['4', '5']));
  world.provisioner.containerLogs = null;
  expect((await call()).body.code).toBe('host_unavailable');
  await print('while it was away');
  world.provisioner.containerLogs = store;
  await eventually(() => expect(all.ids()).toEqual(['4', '5', '6']));
  const { limits } = world.settings;
  Object.assign(limits, { streamsPerSubject: 4 });
  expect((await call('/live')).body.code).toBe('too_many_streams');
  Object.assign(limits, { streamsPerSubject: 1e9 });
  for (const { stop } of [all, tags, again, lost]) stop.abort();
  const guests = await follow('', {}, 'guest');
  await world.call('DELETE', `/clients/${client}/members/guest`, { as: 'root' });
  await guests.reading;
  expect(guests.stop.signal.aborted).toBe(false);
});

test('a policy script’s repeated refusal is one event a day, and a deletion waits for the host', async () => {
  const refusal = 'Template refused: GA4 client, set_cookies FPID: the policy rejected it';
  await print(refusal, refusal);
  const policyEvents = async () => {
    const { body } = await world.call('GET', `/server-containers/${container}/events`, { as: 'viewer' });
    return body.events.filter(({ kind }: { kind: string }) => kind === 'policy');
  };
  await eventually(async () => expect(await policyEvents()).toHaveLength(1));
  expect((await policyEvents())[0].detail).toContain('refused set_cookies to GA4 client on 20');
  await print(refusal.replace('set_cookies', 'send_http'));
  await eventually(async () => expect(await policyEvents()).toHaveLength(2));

  world.provisioner.containerLogs = null;
  const deleted = await world.call('DELETE', `/server-containers/${container}/traffic`, { as: 'owner' });
  expect(deleted.body.deletions).toMatchObject([{ container, logsDeletedAt: null }]);
  world.provisioner.containerLogs = store;
  await eventually(async () => expect((await call()).body.logs).toEqual([]));
  await print('after');
  await eventually(async () => expect(texts((await call()).body)).toEqual(['after']));
});
