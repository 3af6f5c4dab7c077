import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { setUpWorker } from '../../../../gitops/cli/init/worker.ts';
import { cloudflareClient } from '../../../../gitops/clients/cloudflare.ts';
import { cloudflareSetup } from '../../../../gitops/clients/cloudflare-setup.ts';
import { checkWorkerBindings, checkWorkerLogs } from '../../../../gitops/host-report/worker-checks.ts';
import { EMULATOR_TOKEN, startEmulator } from '../../../support/cloudflare/emulator.ts';

/** The emulator has a worker of another name from the start. */
const SCRIPT = 'tagyard-other';

let folder: string;
let emulator: Awaited<ReturnType<typeof startEmulator>>;
let asked: string[];
beforeEach(async () => {
  asked = [];
  // The document by which traffic is checked has neither queues nor buckets.
  emulator = await startEmulator({ checked: false });
  folder = await mkdtemp(join(tmpdir(), 'tagyard-worker-'));
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'dist/worker.js'), 'export default {};');
  const root = new URL('../../../../', import.meta.url);
  writeFileSync(join(folder, 'wrangler.jsonc'), readFileSync(new URL('wrangler.jsonc', root)));
});
afterEach(async () => {
  await emulator.close();
  await rm(folder, { recursive: true, force: true });
});

const setUp = (
  agrees: (question: string) => boolean = () => true,
  hop = 'hop-secret-of-tests',
  replace = async (_question: string) => false,
) =>
  setUpWorker({
    folder,
    account: { url: emulator.url, token: EMULATOR_TOKEN, accountId: emulator.account },
    script: SCRIPT,
    secrets: { HOP_SECRET: hop, INGEST_SECRET: 'ingest-secret' },
    vars: { INGEST_URL: 'https://api.example.net/ingest' },
    async confirm(question) {
      asked.push(question);
      return agrees(question);
    },
    replace,
  });
const writes = () => emulator.calls.filter((call) => !call.startsWith('GET '));
const worker = () => ({
  script: SCRIPT,
  client: cloudflareClient({ url: emulator.url, token: EMULATOR_TOKEN, accountId: emulator.account }),
});

test('makes everything that the checks of the deployed worker demand, asking before each step', async () => {
  await setUp();
  expect(await checkWorkerBindings(worker())).toMatchObject({ status: 'passed' });
  expect(await checkWorkerLogs(worker())).toMatchObject({ status: 'passed' });
  const bindings = await worker().client.scriptBindings(SCRIPT, AbortSignal.timeout(10_000));
  expect(bindings).toContainEqual({ name: 'RAW_LOG_QUEUE', type: 'queue' });
  // Five namespaces, a bucket, two queues, the worker, its consumer.
  expect(asked).toHaveLength(10);
  expect(writes()).toHaveLength(10);
});

test('twice is the same as once; a new secret is uploaded', async () => {
  await setUp();
  const once = writes().length;
  await setUp();
  expect(writes()).toHaveLength(once);
  await setUp(undefined, 'another-hop-secret');
  expect(writes().slice(once)).toEqual(['PUT /accounts/{account_id}/workers/scripts/{script_name}']);
});

test('goes on where it was interrupted', async () => {
  await expect(setUp((question) => !question.includes('the worker'))).rejects.toThrow(
    /the worker .* is missing/,
  );
  const before = writes().length;
  await setUp();
  expect(writes().slice(before)).toEqual([
    'PUT /accounts/{account_id}/workers/scripts/{script_name}',
    'POST /accounts/{account_id}/queues/{queue_id}/consumers',
  ]);
});

test('a token that lacks a permission is named by Cloudflare’s own words', async () => {
  await emulator.close();
  emulator = await startEmulator({ checked: false, lacking: ['Workers Scripts'] });
  await expect(setUp()).rejects.toThrow(/Cloudflare scripts: Authentication error/);
});

test('replaces no variable of a person without being told so', async () => {
  await setUp();
  const metadata = {
    main_module: 'worker.js',
    bindings: [
      { type: 'plain_text', name: 'TAG_UPSTREAM', text: 'https://tags.example.net' },
      { type: 'plain_text', name: 'MINE', text: '1' },
      { type: 'plain_text', name: 'CONFIG_TTL_SECONDS', text: '60' },
    ],
  };
  const account = { url: emulator.url, token: EMULATOR_TOKEN, accountId: emulator.account };
  await cloudflareSetup(account).uploadWorker(SCRIPT, 'export default {};', {
    ...metadata,
    tags: [],
  });
  const before = writes().length;
  await expect(setUp()).rejects.toThrow(/it keeps TAG_UPSTREAM, MINE; /);
  expect(writes()).toHaveLength(before);
  await setUp(undefined, undefined, async () => true);
  const bindings = await worker().client.scriptBindings(SCRIPT, AbortSignal.timeout(10_000));
  expect(bindings.map(({ name }) => name)).not.toContain('MINE');
});
