import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KNOWN_CLOUDFLARE_RANGES } from '../../../../base/foreign-addresses.ts';
import { cloudflareRanges } from '../../../../gitops/appliers/proxy/cloudflare-ranges.ts';

const DAY = 24 * 60 * 60 * 1000;

describe('Cloudflare’s ranges', () => {
  let directory: string;
  let file: string;
  let time: number;
  let calls: number;
  let answer: () => readonly string[];
  const open = () =>
    cloudflareRanges({
      file,
      now: () => time,
      async ask() {
        calls += 1;
        return answer();
      },
    });

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tagyard-ranges-'));
    file = join(directory, 'ranges.json');
    time = Date.parse('2026-11-21T00:00:00Z');
    calls = 0;
    answer = () => ['198.51.100.0/24', '2001:db8::/32'];
  });
  afterEach(() => rm(directory, { recursive: true }));

  test('are those of the release until the API has answered, then the answer, also after a restart', async () => {
    const ranges = await open();
    expect(ranges.current()).toEqual(KNOWN_CLOUDFLARE_RANGES.toSorted());
    await ranges.refresh();
    expect(ranges.current()).toEqual(['198.51.100.0/24', '2001:db8::/32']);
    const again = await open();
    expect(again.current()).toEqual(ranges.current());
  });

  test('are requested once a day, however many passes there are', async () => {
    const ranges = await open();
    for (let pass = 0; pass < 5; pass += 1) await ranges.refresh();
    await (await open()).refresh();
    expect(calls).toBe(1);
    time += DAY;
    await ranges.refresh();
    expect(calls).toBe(2);
  });

  test('are the same object while they are fresh, so that nothing seems changed', async () => {
    const ranges = await open();
    await ranges.refresh();
    const before = ranges.current();
    await ranges.refresh();
    expect(ranges.current()).toBe(before);
  });

  test.each<[string, () => readonly string[]]>([
    [
      'a failure',
      () => {
        throw new Error('503');
      },
    ],
    ['an answer without any', () => []],
    ['an answer that trusts everybody', () => ['0.0.0.0/0']],
    ['an answer that trusts half of IPv6', () => ['2000::/3']],
    ['an answer that is no range', () => ['198.51.100.0/24; include /etc/passwd']],
  ])('stay the last good ones after %s, and are requested again in ten minutes', async (_case, bad) => {
    const ranges = await open();
    await ranges.refresh();
    const good = ranges.current();
    time += DAY;
    answer = bad;
    await ranges.refresh();
    await ranges.refresh();
    expect(ranges.current()).toEqual(good);
    expect(calls).toBe(2);
    time += DAY / 100;
    answer = () => ['203.0.113.0/24'];
    await ranges.refresh();
    expect(ranges.current()).toEqual(['203.0.113.0/24']);
  });

  test.each(['', '{', '{"askedAt":1,"ranges":["0.0.0.0/0"]}'])(
    'are those of the release if the file of the kept ones has %j',
    async (text) => {
      await writeFile(file, text);
      const ranges = await open();
      expect(ranges.current()).toEqual(KNOWN_CLOUDFLARE_RANGES.toSorted());
      await ranges.refresh();
      expect(JSON.parse(await readFile(file, 'utf8')).ranges).toEqual(['198.51.100.0/24', '2001:db8::/32']);
    },
  );
});
