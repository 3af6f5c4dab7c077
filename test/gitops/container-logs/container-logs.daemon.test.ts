import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ContainerLogs, type ContainerLogsOptions } from '../../../gitops/container-logs/container-logs.ts';
import { eventually } from '../../support/eventually.ts';

const SOURCE = { site: 'acme-shop', id: 'a'.repeat(64), place: 'processing/0' };
const TRACE = '0b1f7f5e-6f0e-4f0c-9a52-3a3d0c8f2d11';
const DAY_MS = 86_400_000;
const { signal } = new AbortController();

let dir: string;
const open: ContainerLogs[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-container-logs-'));
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  await rm(dir, { recursive: true });
});

const start = async (options: Partial<ContainerLogsOptions> = {}) => {
  const warn = (fields: object, message: string) => {
    throw new Error(message, { cause: fields });
  };
  const settings = {
    dir,
    kept: 'all',
    keepDays: 7,
    megabytes: 1,
    linesPerSecond: 1e6,
    log: { warn },
  } as const;
  const logs = new ContainerLogs({ ...settings, ...options });
  await logs.open();
  open.push(logs);
  return logs;
};
/** A line of a container, `ms` before now. */
const line = (text: string | null, ms = 0, stream: 'stdout' | 'stderr' = 'stdout') => {
  const time = new Date(Date.now() - ms).toISOString();
  return { stream, time, text, position: { at: `${time.slice(0, -1)}000000Z`, count: 1 } };
};
const tag = (EventName: string, more: object = {}) =>
  JSON.stringify({ Name: 'GA4', Type: 'Message', TraceId: TRACE, EventName, ...more });
const all = { limit: 1_000, from: new Date(0).toISOString() };
const messages = async (logs: ContainerLogs, query = {}, site = SOURCE.site) =>
  (await logs.page(site, { ...all, ...query })).logs.map(({ message, eventName }) => message ?? eventName);

test('keeps lines, and finds them by time, text, request, level and stream, page by page', async () => {
  const logs = await start();
  const last = line('second words', 3_000, 'stderr');
  await logs.write(SOURCE, [
    line('first words', 5_000),
    line(tag('purchase', { RequestBody: 'secret' }), 4_000),
    last,
  ]);
  await logs.write({ ...SOURCE, site: 'other' }, [line('foreign')]);
  expect(await messages(logs)).toEqual(['second words', 'purchase', 'first words']);
  expect(await messages(logs, { q: 'WORDS' })).toEqual(['second words', 'first words']);
  expect(await messages(logs, { requestId: TRACE })).toEqual(['purchase']);
  expect(await messages(logs, { level: 'error' })).toEqual(['second words']);
  expect(await messages(logs, { stream: 'stdout', kind: 'text' })).toEqual(['first words']);
  const to = new Date(Date.parse(last.time) - 500).toISOString();
  expect(await messages(logs, { to })).toEqual(['purchase', 'first words']);
  const from = to;
  expect(await messages(logs, { from })).toEqual(['second words']);
  const page = await logs.page(SOURCE.site, { ...all, limit: 2 });
  const { next, since } = page;
  expect(page.logs.map(({ id }) => id)).toEqual(['3', '2']);
  expect(await messages(logs, { limit: 2, cursor: next ?? '' })).toEqual(['first words']);
  expect(Date.parse(since ?? '')).toBeLessThan(Date.now() - 4_900);
  expect(await readFile(join(dir, SOURCE.site, 'current.ndjson'), 'utf8')).not.toContain('secret');
});

test('the pages of many segments have each line once, the newest first', async () => {
  const logs = await start({ megabytes: 8 });
  const count = 4_000;
  // Two containers whose output arrives one after the other.
  for (const [half, id] of ['b', 'c'].entries()) {
    const lines = Array.from({ length: count / 2 }, (_, index) =>
      line(`line ${'x '.repeat(60)}`, (count - index * 2 - half) * 10),
    );
    await logs.write({ ...SOURCE, id }, lines);
  }
  const times: string[] = [];
  const ids = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await logs.page(SOURCE.site, { ...all, limit: 300, cursor });
    for (const one of page.logs) ids.add(one.id);
    times.push(...page.logs.map(({ time }) => time));
    if (page.next === null) break;
    cursor = page.next;
  }
  expect(ids.size).toBe(count);
  expect(times).toEqual(times.toSorted().reverse());
  expect((await readdir(join(dir, SOURCE.site))).length).toBeGreaterThan(3);
});

test('a later process continues after each stream’s last line, and cuts off a torn line', async () => {
  const first = await start();
  const error = line('one', 2_000, 'stderr');
  const last = line('two', 1_000);
  await first.write(SOURCE, [error, last]);
  await first.close();
  await appendFile(join(dir, SOURCE.site, 'current.ndjson'), '{"seq":3,"time":"2026');
  const second = await start();
  expect(await second.positions(SOURCE)).toEqual({ stdout: last.position, stderr: error.position });
  expect(await second.positions({ ...SOURCE, id: 'unknown' })).toEqual({});
  await second.write(SOURCE, [line('three')]);
  expect(await messages(second)).toEqual(['three', 'two', 'one']);
  expect((await second.page(SOURCE.site, all)).logs.map(({ id }) => id)).toEqual(['3', '2', '1']);
});

test('positions are kept after their lines are gone', async () => {
  const first = await start({ megabytes: 1 });
  const quiet = line('quiet', 60_000);
  await first.write({ ...SOURCE, id: 'quiet' }, [quiet]);
  for (let round = 0; round < 12; round += 1) {
    await first.write(
      SOURCE,
      Array.from({ length: 1_000 }, () => line('z '.repeat(60))),
    );
  }
  expect(await messages(first, { q: 'quiet' })).toEqual([]);
  await first.close();
  const sizes = await readdir(join(dir, SOURCE.site));
  expect(sizes.length).toBeLessThan(7);
  const second = await start();
  expect(await second.positions({ ...SOURCE, id: 'quiet' })).toEqual({ stdout: quiet.position });
});

test('a flood is cut, and each line that was not kept is counted', async () => {
  const logs = await start({ linesPerSecond: 10 });
  const flood = Array.from({ length: 5_000 }, (_, index) => line(`flood ${index % 9}`));
  await logs.write(SOURCE, [line(null, 1_000), ...flood]);
  const { logs: kept } = await logs.page(SOURCE.site, all);
  const dropped = kept.reduce((sum, one) => sum + (one.dropped ?? 0), 0);
  const lines = kept.filter(({ kind }) => kind === 'text');
  expect(lines.length).toBeLessThan(150);
  expect(lines.length + dropped).toBe(5_001);
  expect(kept.at(-1)).toMatchObject({ dropped: 1, kind: 'text' });
  expect(kept[0]).toMatchObject({
    kind: 'dropped',
    level: 'warning',
    message: expect.stringContaining('more'),
  });
  // The rate counts by the lines' own times, so lines that are read late are kept as if they were read in time.
  const late = Array.from({ length: 300 }, (_, index) => line('late', 100_000 - index * 100));
  await logs.write({ ...SOURCE, id: 'late' }, late);
  expect(await messages(logs, { q: 'late' })).toHaveLength(300);
});

test('live lines after a position are returned as soon as they arrive, and a gap is reported', async () => {
  const logs = await start();
  await logs.write(SOURCE, [line('one')]);
  expect(await messages(logs)).toEqual(['one']);
  const begin = await logs.newer(SOURCE.site, { limit: 10 }, 10_000, signal);
  expect(begin).toEqual({ logs: [], position: '1', missed: 0 });
  const waiting = logs.newer(SOURCE.site, { limit: 1, after: '1' }, 10_000, signal);
  await logs.write(SOURCE, [line('two'), line('three')]);
  const next = await waiting;
  expect(next.logs.map(({ message }) => message)).toEqual(['two']);
  expect(next.position).toBe('2');
  const rest = await logs.newer(SOURCE.site, { limit: 9, after: '2', q: 'nothing' }, 10_000, signal);
  expect(rest).toEqual({ logs: [], position: '3', missed: 0 });
  expect(await logs.newer(SOURCE.site, { limit: 9, after: '99' }, 0, signal)).toMatchObject({ missed: null });
});

test('what is too old, or was deleted on demand, doesn’t come back from the engine’s log', async () => {
  const logs = await start({ keepDays: 2 });
  const old = line('old', 3 * DAY_MS);
  const gone = line('gone', 2_000);
  await logs.write(SOURCE, [old, gone]);
  const refused = 'Template refused: GA4 client, set_cookies FPID: the policy rejected it';
  await logs.write(SOURCE, [line(refused, 2_000)]);
  expect(logs.refusals()).toMatchObject([
    { site: SOURCE.site, permission: 'set_cookies', name: 'GA4 client' },
  ]);
  expect(await messages(logs)).toHaveLength(2);
  await logs.deleteUntil(SOURCE.site, new Date(Date.now() - 1_000));
  await logs.write(SOURCE, [line('kept')]);
  expect(await messages(logs)).toEqual(['kept']);
  expect(logs.refusals()).toEqual([]);
  await logs.close();
  const again = await start();
  // A container whose position is unknown is read from its beginning.
  await again.write({ ...SOURCE, id: 'other' }, [gone, line('new')]);
  expect(await messages(again)).toEqual(['new', 'kept']);
  const files = await Promise.all(
    (await readdir(join(dir, SOURCE.site))).map((name) => readFile(join(dir, SOURCE.site, name), 'utf8')),
  );
  expect(files.join('')).not.toContain('gone');
});

test('old segments are removed, even if they hold all lines of a site that has printed none since', async () => {
  const first = await start({ keepDays: 30 });
  await first.write(SOURCE, [line('old', 9 * DAY_MS)]);
  const position = await first.positions(SOURCE);
  await first.close();
  const second = await start({ keepDays: 7 });
  await eventually(async () => expect(await messages(second)).toEqual([]));
  expect(await second.positions(SOURCE)).toEqual(position);
  // The file itself is rewritten after its lines have disappeared from the answers.
  await eventually(async () =>
    expect(await readFile(join(dir, SOURCE.site, 'current.ndjson'), 'utf8')).not.toContain('old'),
  );
});

test('a forgotten site has no lines, and a line that the disk has damaged hides no other line', async () => {
  const logs = await start();
  await logs.write(SOURCE, [line('one'), line('two')]);
  await logs.close();
  const path = join(dir, SOURCE.site, 'current.ndjson');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace('"message":"one"', '"message":on'));
  const again = await start();
  expect(await messages(again)).toEqual(['two']);
  await again.forget(SOURCE.site);
  expect(await readdir(dir)).not.toContain(SOURCE.site);
  expect(await messages(again)).toEqual([]);
});
