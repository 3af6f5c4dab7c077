import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EMULATOR_TOKEN, NO_LIMITS, startEmulator } from '../../support/cloudflare/emulator.ts';
import { type FaultyCloudflare, startFaultyCloudflare } from '../../support/cloudflare/faulty.ts';
import { testClock } from '../../support/test-clock.ts';
import { kvBehaviours } from './kv.ts';

const ABSENT = '{"success":false,"errors":[{"code":10009,"message":"key not found"}],"result":null}';
const STORED = 'keeps a value and its metadata under any key, seen within a minute';
const DELETED = 'answers 404 for a deleted key, and lists it no more, within a minute';

describe('the conformance rows of KV', () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  /** An emulator behind a front that can answer in its place, and how long rows have slept. */
  async function stage(options: Parameters<typeof startEmulator>[0] = {}) {
    const clock = testClock();
    const cloudflare = await startEmulator({ now: clock.date, ...options });
    closing.push(() => cloudflare.close());
    const front = await startFaultyCloudflare(cloudflare.url);
    closing.push(() => front.close());
    const target = {
      url: front.url,
      token: EMULATOR_TOKEN,
      zone: cloudflare.zone,
      account: cloudflare.account,
      prefix: 'conform-0123abcd',
      sleep: async (ms: number) => clock.advance(ms),
    };
    const row = async (name: string) => {
      const found = kvBehaviours.find((behaviour) => behaviour.name === name);
      if (found === undefined) throw new Error(`no row ${name}`);
      await found.check(target);
    };
    return { front, row, slept: clock.now };
  }

  /** Makes the front answer reads of a value like this, after `skipped` real answers. */
  function spoilReads(front: FaultyCloudflare, times: number, status: number, body: string, skipped = 0) {
    let left = skipped;
    front.plan(
      // A value isn't JSON.
      {
        kind: 'refuse',
        status,
        body,
        ...(status === 200 ? { headers: { 'content-type': 'text/plain' } } : {}),
      },
      (method, path) => {
        if (method !== 'GET' || !path.includes('/values/')) return false;
        left -= 1;
        return left < 0;
      },
      times,
    );
  }

  describe('wait for a write', () => {
    let world: Awaited<ReturnType<typeof stage>>;
    beforeEach(async () => {
      world = await stage();
    });

    test('that is seen after some reads', async () => {
      spoilReads(world.front, 3, 404, ABSENT);
      await world.row(STORED);
      expect(world.slept()).toBeGreaterThan(0);
    });

    test('that deletes, and is seen after some reads', async () => {
      // The first read, before the delete, gets its real answer.
      spoilReads(world.front, 3, 200, 'text', 1);
      await world.row(DELETED);
    });

    test.each([
      ['stored', STORED, 404, ABSENT, 0],
      ['deleted', DELETED, 200, 'text', 1],
    ])('but no longer than a minute and a little: %s', async (_what, name, status, body, skipped) => {
      spoilReads(world.front, Number.POSITIVE_INFINITY, status, body, skipped);
      await expect(world.row(name)).rejects.toThrow();
      expect(world.slept()).toBeGreaterThan(60_000);
      expect(world.slept()).toBeLessThan(90_000);
    });

    test('and don’t wait where there is no answer', async () => {
      world.front.plan({ kind: 'drop' }, (method, path) => method === 'GET' && path.includes('/values/'));
      await expect(world.row(STORED)).rejects.toThrow('fetch failed');
      expect(world.slept()).toBe(0);
    });
  });

  test.each([
    'refuses a second write of a key within a second',
    'refuses a bulk write of a key within a second of its last write, or names the key as unwritten',
  ])('report a difference where a key takes two writes in a second: %s', async (name) => {
    const { row } = await stage({ limits: NO_LIMITS });
    await expect(row(name)).rejects.toThrow('both were written');
  });
});
