import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/management/listen.ts';
import { batchOf } from '../support/management/raw-logs.ts';
import { creation, World } from '../support/management/world.ts';

const SECRET = 'ingest-s3cret-of-the-tests';

let world: World;
let ours: string;
let own: string;

beforeAll(async () => {
  world = await World.open({ logLevel: 'silent', settings: { ingestSecret: SECRET } });
  ours = await world.client('Ours');
  own = (await world.call('POST', '/server-containers', { as: 'owner', body: creation(ours) })).body.id;
}, 120_000);
afterAll(() => world.close());

const ingest = async (records: readonly object[]) => {
  const body = records.map((record) => JSON.stringify(record)).join('\n');
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/x-ndjson' };
  const { status } = await fetch(`${await world.listen()}/ingest`, { method: 'POST', body, headers });
  expect(status).toBe(202);
};
const follow = async (query = '', headers: Record<string, string> = {}, as = 'viewer') => {
  const stream = await listen(`${await world.listen()}/server-containers/${own}/requests/live${query}`, {
    authorization: `Bearer ${await world.issuer.token(as)}`,
    ...headers,
  });
  await eventually(() => expect(stream.text()).toContain('retry'));
  const rows = () =>
    [...stream.text().matchAll(/^event: request\ndata: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
  return { ...stream, rows, requests: () => rows().map(({ requestId }) => requestId) };
};

test('a stream follows a container’s requests, continues after a row, and reports what was missed', async () => {
  const all = await follow();
  const failing = await follow('?status=5xx');
  await ingest(
    batchOf([
      { container: own, requestId: 'a' },
      { container: own, requestId: 'b', status: 503 },
      { container: own, requestId: 'c', probe: true },
      { container: crypto.randomUUID(), requestId: 'foreign' },
      { container: null, requestId: 'unknown' },
    ]),
  );
  await eventually(() => expect(all.requests()).toEqual(['a', 'b']));
  await eventually(() => expect(failing.requests()).toEqual(['b']));
  const { id } = all.rows()[0];
  all.stop.abort();
  await ingest(batchOf([{ container: own, requestId: 'd' }]));
  const again = await follow('', { 'last-event-id': id });
  await eventually(() => expect(again.requests()).toEqual(['b', 'd']));
  expect(again.text()).not.toContain('event: gap');
  const lost = await follow('', { 'last-event-id': `${crypto.randomUUID()}.1` });
  await ingest(batchOf([{ container: own, requestId: 'e' }]));
  await eventually(() => expect(lost.requests()).toEqual(['e']));
  expect(lost.text()).toContain('event: gap\ndata: {"missed":null}');
  for (const { stop } of [failing, again, lost]) stop.abort();
});

test('a stream drops the rows of a reader that is too slow, and says how many', async () => {
  const stop = new AbortController();
  const answer = await fetch(`${await world.listen()}/server-containers/${own}/requests/live`, {
    headers: { authorization: `Bearer ${await world.issuer.token('viewer')}` },
    signal: stop.signal,
  });
  const reader = answer.body?.getReader();
  // Nothing is read while more arrives than the connection can buffer.
  for (let round = 0; round < 15; round += 1) {
    await ingest(batchOf(Array.from({ length: 1_000 }, () => ({ container: own, cause: 'x'.repeat(900) }))));
  }
  let text = '';
  await eventually(async () => {
    text += new TextDecoder().decode((await reader?.read())?.value);
    expect(text).toMatch(/event: gap\ndata: \{"missed":\d+\}/);
  });
  stop.abort();
});

test('a stream ends with its reader’s membership, and streams are limited for each subject', async () => {
  await world.call('PUT', `/clients/${ours}/members/guest`, { as: 'root', body: { role: 'viewer' } });
  const stream = await follow('', {}, 'guest');
  const url = `/server-containers/${own}/requests/live`;
  expect((await world.call('GET', url, { as: 'stranger' })).body.code).toBe('unknown_container');
  const { limits } = world.settings;
  Object.assign(limits, { streamsPerSubject: 1 });
  const headers = { accept: 'text/event-stream' };
  for (const path of [url, `/server-containers/${own}/container-logs/live`, '/events']) {
    const refused = await world.call('GET', path, { as: 'guest', headers });
    expect(refused.body.code, path).toBe('too_many_streams');
  }
  Object.assign(limits, { streamsPerSubject: 1e9 });
  await world.call('DELETE', `/clients/${ours}/members/guest`, { as: 'root' });
  await stream.reading;
  expect(stream.stop.signal.aborted).toBe(false);
});
