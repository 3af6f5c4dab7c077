import type { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openState } from '../../../../../sites/local/cloudflare/api/state.ts';
import type { KvStore } from '../../../../../sites/local/cloudflare/api/stores.ts';
import { type DelayedKv, delayedKv } from '../../../../../sites/local/cloudflare/kv/delayed.ts';
import { sqliteKvStore } from '../../../../../sites/local/cloudflare/kv/store.ts';
import { eventually } from '../../../../support/eventually.ts';
import { testClock } from '../../../../support/test-clock.ts';

let clock: ReturnType<typeof testClock>;
let db: DatabaseSync;
/** What the worker reads. */
let worker: KvStore;
let delayed: DelayedKv;
const delays: Record<string, number> = { fast: 5_000, slow: 60_000 };

const open = () => delayedKv({ db, namespace: 'n', worker, clock, delayMs: (key) => delays[key] ?? 30_000 });

beforeEach(() => {
  clock = testClock();
  db = openState(':memory:');
  worker = sqliteKvStore(db, 'worker', clock.date);
  delayed = open();
});
afterEach(async () => {
  await delayed.close();
  db.close();
});

const workerSees = (key: string, value: string | null) =>
  eventually(async () => expect(await worker.get(key)).toBe(value));

test('shows the API a write at once, and the worker only after the delay of its key (docs/facts.md, Cloudflare Workers)', async () => {
  await delayed.api.put('fast', 'one', { metadata: { mark: 'm' } });
  expect(await delayed.api.get('fast')).toBe('one');
  expect((await delayed.api.list()).keys).toEqual([{ name: 'fast', metadata: { mark: 'm' } }]);
  clock.advance(4_999);
  expect(await worker.get('fast')).toBeNull();
  clock.advance(1);
  await workerSees('fast', 'one');
  expect((await delayed.api.list()).keys).toEqual([{ name: 'fast', metadata: { mark: 'm' } }]);
});

test('delivers keys out of the order of their writes', async () => {
  await delayed.api.put('slow', 'first');
  await delayed.api.put('fast', 'second');
  clock.advance(5_000);
  await workerSees('fast', 'second');
  expect(await worker.get('slow')).toBeNull();
  clock.advance(55_000);
  await workerSees('slow', 'first');
});

test('shows the worker a deleted key and an old value until the write arrives (docs/facts.md, Cloudflare Workers)', async () => {
  await worker.put('slow', 'old');
  await worker.put('fast', 'old');
  await delayed.api.delete('slow');
  await delayed.api.put('fast', 'new');
  expect(await delayed.api.get('slow')).toBeNull();
  expect((await delayed.api.list()).keys).toEqual([{ name: 'fast' }]);
  expect([await worker.get('slow'), await worker.get('fast')]).toEqual(['old', 'old']);
  clock.advance(60_000);
  await workerSees('slow', null);
  await workerSees('fast', 'new');
});

test('delivers the newest of several writes at the time at which the first one is due', async () => {
  await delayed.api.put('slow', 'one');
  clock.advance(59_000);
  await delayed.api.put('slow', 'two');
  clock.advance(1_000);
  await workerSees('slow', 'two');
});

test('delivers after a restart what the API had acknowledged before it', async () => {
  await delayed.api.put('slow', 'kept', { expirationTtl: 600 });
  await delayed.close();
  clock.advance(60_000);
  expect(await worker.get('slow')).toBeNull();
  delayed = open();
  await workerSees('slow', 'kept');
  clock.advance(541_000);
  expect(await worker.get('slow')).toBeNull();
});

test('lists keys that the worker sees together with keys that it doesn’t see yet, page by page', async () => {
  const names = Array.from({ length: 25 }, (_, index) => `p${String(index).padStart(2, '0')}`);
  for (const [index, name] of names.entries()) {
    if (index % 2 === 0) await worker.put(name, 'v');
    else await delayed.api.put(name, 'v');
  }
  await delayed.api.delete('p04');
  await delayed.api.put('q', 'v');
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await delayed.api.list({
      prefix: 'p',
      limit: 10,
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...page.keys.map(({ name }) => name));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(found).toEqual(names.filter((name) => name !== 'p04'));
});

test('repeats a write that the worker’s side did not accept, and delivers those after it', async () => {
  const { put } = worker;
  let failures = 0;
  worker.put = async (...write) => {
    failures += 1;
    if (failures === 1) throw new Error('the runtime is not there');
    await put(...write);
  };
  await delayed.api.put('fast', 'one');
  clock.advance(5_000);
  await eventually(() => expect(failures).toBe(1));
  await delayed.api.put('slow', 'two');
  expect(await delayed.api.get('fast')).toBe('one');
  clock.advance(1_000);
  await workerSees('fast', 'one');
  clock.advance(60_000);
  await workerSees('slow', 'two');
});
