import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  startEmulator,
  type TestEmulator,
} from '../../../support/cloudflare/emulator.ts';
import { wranglerWith } from '../../../support/wrangler.ts';

let cloudflare: TestEmulator;
let home: string;
beforeAll(async () => {
  cloudflare = await startEmulator();
  home = await mkdtemp(join(tmpdir(), 'tagyard-wrangler-'));
});
afterAll(async () => {
  await cloudflare?.close();
  await rm(home, { recursive: true });
});

const run = (...args: readonly string[]) => {
  const env = {
    CLOUDFLARE_API_BASE_URL: cloudflare.url,
    CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN,
    CLOUDFLARE_ACCOUNT_ID: cloudflare.account,
  };
  return wranglerWith(env, home, home, ...args);
};
const file = async (name: string, content: unknown) => {
  const path = join(home, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
};
const named = z.array(z.object({ name: z.string() }));
/** What wrangler prints as JSON, after its own lines. */
const json = (printed: string): unknown => JSON.parse(printed.slice(printed.indexOf('[')));

test('wrangler lists namespaces, and keeps keys in one of them', async () => {
  const titles = z
    .array(z.object({ id: z.string(), title: z.string() }))
    .parse(json(await run('kv', 'namespace', 'list')));
  const id = titles.find(({ title }) => title === `${EMULATOR_SCRIPT}-ROUTES`)?.id ?? '';
  const at = ['--remote', '--namespace-id', id];
  await run('kv', 'key', 'put', ...at, 'a/b c', 'one', '--metadata', '{"m":1}');
  expect(await run('kv', 'key', 'get', ...at, '--text', 'a/b c')).toContain('one');
  await run(
    'kv',
    'bulk',
    'put',
    ...at,
    await file('pairs.json', [
      { key: 'x', value: '1' },
      { key: 'y', value: '2' },
    ]),
  );
  expect(named.parse(json(await run('kv', 'key', 'list', ...at))).map(({ name }) => name)).toEqual([
    'a/b c',
    'x',
    'y',
  ]);
});

test('wrangler deploys a worker twice and lists its deployments', async () => {
  await file('worker.js', 'export default { fetch: () => new Response("ok") };');
  const config = await file('wrangler.jsonc', {
    name: 'of-wrangler',
    main: 'worker.js',
    no_bundle: true,
    compatibility_date: '2026-07-01',
    workers_dev: false,
    preview_urls: false,
    observability: { enabled: true, logs: { enabled: true, invocation_logs: false } },
  });
  await run('deploy', '-c', config);
  await run('deploy', '-c', config);
  const client = cloudflare.client();
  const { signal } = new AbortController();
  expect(await client.scriptSettings('of-wrangler', signal)).toMatchObject({
    observability: { logs: { invocation_logs: false } },
  });
  const deployments = z.array(z.object({ versions: z.array(z.object({ percentage: z.literal(100) })) }));
  const printed = await run('deployments', 'list', '-c', config, '--json');
  expect(deployments.parse(json(printed))).toHaveLength(2);
});
