import { afterEach, expect, test } from 'vitest';
import { checkWorkerBindings, checkWorkerLogs } from '../../../gitops/host-report/worker-checks.ts';
import { EMULATOR_SCRIPT, startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';
import { silentServer } from '../../support/silent.ts';

/** A Worker's settings, as `wrangler.jsonc` makes them. */
const SETTINGS = {
  logpush: false,
  observability: {
    enabled: true,
    logs: { enabled: true, invocation_logs: false },
    traces: { enabled: false },
  },
  tail_consumers: null,
};
const KV = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'];
const BINDINGS = [
  ...KV.map((name) => ({ type: 'kv_namespace', name, namespace_id: 'a'.repeat(32) })),
  { type: 'r2_bucket', name: 'RAW_LOGS', bucket_name: 'tagyard-raw-logs' },
  { type: 'secret_text', name: 'HOP_SECRET' },
];

let cloudflare: TestEmulator;
afterEach(() => cloudflare.close());

const start = async (worker: object) => {
  cloudflare = await startEmulator({
    worker: { bindings: BINDINGS, compatibilityDate: '2026-07-01', settings: SETTINGS, ...worker },
  });
  return { client: cloudflare.client(), script: EMULATOR_SCRIPT };
};

test('a worker as wrangler deploys it passes both checks', async () => {
  const worker = await start({});
  expect(await checkWorkerLogs(worker)).toMatchObject({ name: 'worker_logs', status: 'passed', fix: null });
  expect(await checkWorkerBindings(worker)).toMatchObject({ name: 'worker_bindings', status: 'passed' });
});

test.each<[string, object, string | RegExp]>([
  [
    'invocation logs',
    { observability: { enabled: true, logs: { enabled: true, invocation_logs: true } } },
    'invocation logs are on',
  ],
  [
    'observability as the dashboard switches it on',
    { observability: { enabled: true } },
    'invocation logs are on',
  ],
  ['traces', { observability: { ...SETTINGS.observability, traces: { enabled: true } } }, 'traces are on'],
  ['Logpush', { logpush: true }, 'Logpush is on'],
  ['a tail worker', { tail_consumers: [{ service: 'spy' }] }, 'spy'],
])('the logs’ check fails with %s', async (_what, settings, detail) => {
  const check = await checkWorkerLogs(await start({ settings: { ...SETTINGS, ...settings } }));
  expect(check).toMatchObject({
    name: 'worker_logs',
    status: 'failed',
    detail: expect.stringMatching(detail),
    fix: expect.stringContaining('npx wrangler deploy'),
  });
});

test.each([[{}], [{ observability: null }], [{ observability: { enabled: false } }]])(
  'the logs’ check passes where everything is off: %j',
  async (settings) => {
    expect(await checkWorkerLogs(await start({ settings }))).toMatchObject({ status: 'passed' });
  },
);

test.each<[string, readonly { name: string; type: string }[], string]>([
  ['no HOP_SECRET', BINDINGS.filter(({ name }) => name !== 'HOP_SECRET'), 'HOP_SECRET is missing'],
  [
    'a HOP_SECRET that anyone with the dashboard reads',
    [...BINDINGS.filter(({ name }) => name !== 'HOP_SECRET'), { name: 'HOP_SECRET', type: 'plain_text' }],
    'HOP_SECRET has the type plain_text, not secret_text',
  ],
  ['no store', BINDINGS.filter(({ name }) => name !== 'EDGE_CONFIG'), 'EDGE_CONFIG is missing'],
  ['no archive', BINDINGS.filter(({ name }) => name !== 'RAW_LOGS'), 'RAW_LOGS is missing'],
  ['nothing', [], 'ROUTES is missing'],
])('the bindings’ check fails with %s', async (_what, bindings, detail) => {
  expect(await checkWorkerBindings(await start({ bindings }))).toMatchObject({
    name: 'worker_bindings',
    status: 'failed',
    detail: expect.stringContaining(detail),
    fix: expect.stringContaining('wrangler'),
  });
});

test('both checks fail where no worker of this name is deployed', async () => {
  const { client } = await start({});
  for (const check of [checkWorkerLogs, checkWorkerBindings]) {
    expect(await check({ client, script: 'absent' })).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('no worker “absent”'),
    });
  }
});

test('both checks are skipped where the token may not read the worker', async () => {
  await start({});
  const client = cloudflare.client({ token: 'another' });
  for (const check of [checkWorkerLogs, checkWorkerBindings]) {
    expect(await check({ client, script: EMULATOR_SCRIPT })).toMatchObject({
      status: 'skipped',
      detail: expect.stringContaining('Workers Scripts: Read'),
    });
  }
});

test('both checks name Cloudflare’s API where it can’t be reached, and blame no setting of the worker', async () => {
  await start({});
  const silent = await silentServer();
  const client = cloudflare.client({ url: silent.url });
  const checks = [checkWorkerLogs, checkWorkerBindings];
  const unreached = {
    status: 'failed',
    detail: expect.stringContaining('Cloudflare’s API gave no answer'),
    fix: expect.not.stringContaining('wrangler'),
  };
  // In parallel, because each check waits until the client gives up.
  expect(await Promise.all(checks.map((check) => check({ client, script: EMULATOR_SCRIPT })))).toMatchObject([
    unreached,
    unreached,
  ]);
  await silent.close();
});
