import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Behaviour } from '../behaviour.ts';
import { NotTried } from '../not-tried.ts';
import { type Answer, assertRefused, type CloudflareTarget, call, createdId, succeed } from './target.ts';

const source = 'Cloudflare Workers';
/** Longer than the minute after which each reader must see a write, even one that remembers the key as absent. */
const DELIVERY_MS = 65_000;
const POLL_MS = 2_000;
/** A key takes one write in this time. */
const WRITE_MS = 1_000;
/** How many pairs of writes are tried, each to a new key, before the network counts as too slow for this behaviour. */
const ATTEMPTS = 3;
const outcome = z.object({ successful_key_count: z.number(), unsuccessful_keys: z.array(z.string()) });
const names = z.array(z.object({ name: z.string(), metadata: z.unknown().optional() }));

/** Runs `work` with a namespace of its own, and deletes it. */
function inNamespace(work: (target: CloudflareTarget, path: string) => Promise<void>) {
  return async (target: CloudflareTarget) => {
    const namespaces = `/accounts/${target.account}/storage/kv/namespaces`;
    const id = await createdId(target, 'POST', namespaces, { title: `${target.prefix}-kv` });
    try {
      await work(target, `${namespaces}/${id}`);
    } finally {
      await call(target, 'DELETE', `${namespaces}/${id}`);
    }
  };
}

/** Waits until an assertion holds: KV promises only that a write is seen eventually. */
async function delivered(target: CloudflareTarget, assertion: () => Promise<void>): Promise<void> {
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      return await assertion();
    } catch (error) {
      if (!(error instanceof assert.AssertionError) || waited >= DELIVERY_MS) throw error;
    }
    await target.sleep(POLL_MS);
  }
}

/** Rejects unless `write`, right after another write of the key, is refused. */
function refusesSecondWrite(
  write: (target: CloudflareTarget, path: string, key: string) => Promise<Answer>,
  isRefused: (answer: Answer, key: string) => boolean,
) {
  return inNamespace(async (target, path) => {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const key = `${target.prefix}-twice-${attempt}`;
      const started = performance.now();
      await succeed(target, 'PUT', `${path}/values/${key}`, 'first');
      const second = await write(target, path, key);
      if (isRefused(second, key)) return;
      assert.equal(second.status, 200, second.text);
      // Slower calls may have been more than a second apart.
      if (performance.now() - started < WRITE_MS) assert.fail(`both were written: ${second.text}`);
    }
    throw new NotTried(
      'two calls in a row take more than a second: run this on a machine closer to Cloudflare',
    );
  });
}

export const kvBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'keeps a value and its metadata under any key, seen within a minute',
    source,
    check: inNamespace(async (target, path) => {
      const key = `${target.prefix}/a b?ü`;
      const form = new FormData();
      form.set('value', 'text');
      form.set('metadata', '{"mark":"m"}');
      await succeed(target, 'PUT', `${path}/values/${encodeURIComponent(key)}`, form);
      await delivered(target, async () => {
        assert.equal((await call(target, 'GET', `${path}/values/${encodeURIComponent(key)}`)).text, 'text');
        const listed = names.parse(await succeed(target, 'GET', `${path}/keys?prefix=${target.prefix}`));
        assert.deepEqual(listed, [{ name: key, metadata: { mark: 'm' } }]);
      });
    }),
  },
  {
    name: 'answers 404 for a deleted key, and lists it no more, within a minute',
    source,
    check: inNamespace(async (target, path) => {
      const key = `${target.prefix}-deleted`;
      const value = `${path}/values/${key}`;
      await succeed(target, 'PUT', value, 'text');
      await delivered(target, async () => assert.equal((await call(target, 'GET', value)).text, 'text'));
      await target.sleep(WRITE_MS);
      await succeed(target, 'DELETE', value);
      await delivered(target, async () => {
        assertRefused(await call(target, 'GET', value), 404, 10009);
        assert.deepEqual(await succeed(target, 'GET', `${path}/keys?prefix=${key}`), []);
      });
    }),
  },
  {
    name: 'refuses a second write of a key within a second',
    source,
    check: refusesSecondWrite(
      (target, path, key) => call(target, 'PUT', `${path}/values/${key}`, 'second'),
      ({ status }) => status === 429,
    ),
  },
  {
    name: 'refuses a bulk write of a key within a second of its last write, or names the key as unwritten',
    source,
    check: refusesSecondWrite(
      (target, path, key) => call(target, 'PUT', `${path}/bulk`, [{ key, value: 'second' }]),
      ({ status, json }, key) =>
        status === 429 || outcome.safeParse(json?.result).data?.unsuccessful_keys.includes(key) === true,
    ),
  },
  {
    name: 'refuses a second namespace with the same title',
    source,
    check: inNamespace(async (target) => {
      const namespaces = `/accounts/${target.account}/storage/kv/namespaces`;
      assertRefused(await call(target, 'POST', namespaces, { title: `${target.prefix}-kv` }), 400, 10014);
    }),
  },
  {
    name: 'lists a thousand namespaces in a page',
    source,
    check: inNamespace(async (target) => {
      const path = `/accounts/${target.account}/storage/kv/namespaces?per_page=1000&order=title&direction=asc`;
      const titles = z.array(z.object({ title: z.string() })).parse(await succeed(target, 'GET', path));
      assert.ok(titles.some(({ title }) => title === `${target.prefix}-kv`));
    }),
  },
  {
    name: 'answers which keys of a bulk write it wrote, and counts an absent key as deleted',
    source,
    check: inNamespace(async (target, path) => {
      const keys = ['a', 'b'].map((end) => `${target.prefix}-${end}`);
      const pairs = keys.map((key) => ({ key, value: 'v' }));
      const written = outcome.parse(await succeed(target, 'PUT', `${path}/bulk`, pairs));
      assert.equal(written.successful_key_count + written.unsuccessful_keys.length, 2);
      const absent = [`${target.prefix}-never`];
      const removed = outcome.parse(await succeed(target, 'POST', `${path}/bulk/delete`, absent));
      assert.equal(removed.successful_key_count, 1);
    }),
  },
  {
    name: 'answers null for an absent key of a bulk read',
    source,
    check: inNamespace(async (target, path) => {
      const key = `${target.prefix}-absent`;
      const read = await succeed(target, 'POST', `${path}/bulk/get`, { keys: [key] });
      assert.deepEqual(z.object({ values: z.record(z.string(), z.unknown()) }).parse(read).values, {
        [key]: null,
      });
    }),
  },
  {
    name: 'answers 404 for an absent key',
    source,
    check: inNamespace(async (target, path) => {
      assertRefused(await call(target, 'GET', `${path}/values/${target.prefix}-absent`), 404, 10009);
    }),
  },
  {
    name: 'refuses a key over 512 bytes and metadata over 1,024 bytes',
    source,
    check: inNamespace(async (target, path) => {
      const long = { key: `${target.prefix}${'k'.repeat(512)}`, value: 'v' };
      const heavy = { key: target.prefix, value: 'v', metadata: { m: 'x'.repeat(1024) } };
      for (const pair of [long, heavy]) {
        const { status, text } = await call(target, 'PUT', `${path}/bulk`, [pair]);
        assert.ok(status >= 400 && status < 500, text);
      }
    }),
  },
];
