import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { glob, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dockerDataRoot } from '../../../gitops/clients/docker.ts';
import { askEdge } from '../../../gitops/host-report/edge-visit.ts';
import { nodeLookup } from '../../../gitops/host-report/node-lookup.ts';
import {
  checkDisk,
  checkDockerBridge,
  checkDockerDisk,
  checkEdge,
  checkProxy,
} from '../../../gitops/host-report/part-checks.ts';
import { signal } from '../../support/signal.ts';
import { silentServer } from '../../support/silent.ts';

const LIMIT_MS = 300;
let stack: AsyncDisposableStack;
beforeEach(() => {
  stack = new AsyncDisposableStack();
});
afterEach(() => stack.disposeAsync());

describe('the disk', () => {
  const folder = async () =>
    stack.adopt(await mkdtemp(join(tmpdir(), 'tagyard-disk-')), (path) => rm(path, { recursive: true }));

  test('passes if there is enough space, and no file of the check stays', async () => {
    const path = await folder();
    expect(await checkDisk(path, 1)).toMatchObject({
      status: 'passed',
      detail: expect.stringContaining(path),
    });
    expect(await readdir(path)).toEqual([]);
  });

  test('fails if less space is free than needed', async () => {
    const check = await checkDisk(await folder(), Number.MAX_SAFE_INTEGER);
    expect(check).toMatchObject({
      name: 'disk',
      status: 'failed',
      detail: expect.stringMatching(/^only \d+ MiB/),
    });
    expect(check.fix).toContain('Free space');
  });

  test.each(['/proc', '/nonexistent'])('fails where no file can be written: %s', async (path) => {
    expect(await checkDisk(path, 0)).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining(path),
    });
  });
});

describe('the disk of Docker', () => {
  test('passes with enough space, else says how much is free; fails if Docker doesn’t answer', async () => {
    const path = await mkdtemp(join(tmpdir(), 'tagyard-disk-'));
    stack.defer(() => rm(path, { recursive: true }));
    expect(await checkDockerDisk(async () => path, 1)).toMatchObject({
      name: 'docker_disk',
      status: 'passed',
    });
    expect(await checkDockerDisk(async () => path, Number.MAX_SAFE_INTEGER)).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(`^only \\d+ MiB free on the disk of ${path}`),
    });
    const { port, close } = await silentServer();
    await close();
    const away = new Docker({ host: '127.0.0.1', port });
    expect(await dockerDataRoot(away)).toBeNull();
    const down = new Docker({ socketPath: join(path, 'docker.sock') });
    expect(await checkDockerDisk(() => dockerDataRoot(down))).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('Docker did not answer'),
    });
  });

  test.each([null, '/nonexistent'])('is skipped where it is not on this machine: %s', async (root) => {
    expect(await checkDockerDisk(async () => root)).toMatchObject({ status: 'skipped', fix: null });
  });
});

describe('the proxy', () => {
  test('fails where its process is stopped, and passes when it continues', async () => {
    const script = `
      const server = require('node:net').createServer((socket) => socket.on('data', () => socket.destroy()));
      server.listen(0, '127.0.0.1', () => process.send(server.address().port));`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const gone = once(child, 'exit');
    const pid = child.pid ?? Number.NaN;
    stack.defer(async () => {
      signal(pid, 'SIGKILL');
      await gone;
    });
    const [port]: number[] = await once(child, 'message');
    const endpoint = { address: '127.0.0.1', port: port ?? 0 };
    expect(await checkProxy(endpoint)).toMatchObject({ name: 'proxy', status: 'passed' });
    signal(pid, 'SIGSTOP');
    expect(await checkProxy(endpoint, LIMIT_MS)).toMatchObject({
      status: 'failed',
      detail: 'no answer within 0.3 s',
    });
    signal(pid, 'SIGCONT');
    expect(await checkProxy(endpoint)).toMatchObject({ status: 'passed' });
  });

  test('fails where nothing listens', async () => {
    const { port, close } = await silentServer();
    await close();
    const check = await checkProxy({ address: '127.0.0.1', port });
    expect(check).toMatchObject({ status: 'failed', detail: expect.stringContaining('ECONNREFUSED') });
  });

  test('passes where the connection is closed without an answer', async () => {
    const server = createSocketServer((socket) => socket.on('data', () => socket.resetAndDestroy()));
    await new Promise<void>((done) => server.listen({ port: 0, host: '127.0.0.1' }, done));
    stack.defer(() => new Promise((done) => server.close(() => done())));
    const { port } = server.address() as AddressInfo; // it listens on TCP
    expect(await checkProxy({ address: '127.0.0.1', port })).toMatchObject({ status: 'passed' });
  });
});

describe('the edge', () => {
  const hopSecret = 'hop-secret-of-the-tests';
  const lookup = nodeLookup({
    addresses: async () => ['127.0.0.1'],
    alias: async () => null,
  });
  async function serve(listener: RequestListener): Promise<URL> {
    const server: Server = createServer(listener);
    await new Promise<void>((done) => server.listen({ port: 0, host: '127.0.0.1' }, done));
    stack.defer(async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    });
    return new URL(`http://shop.example.net:${(server.address() as AddressInfo).port}`); // it listens on TCP
  }

  test('passes where the worker answers', async () => {
    const url = await serve((_request, response) =>
      response.writeHead(404).end(JSON.stringify({ type: 'urn:tagyard:problem:not_found' })),
    );
    expect(await checkEdge(url, { lookup, hopSecret })).toMatchObject({ name: 'edge', status: 'passed' });
  });

  test.each([
    [200, 'a stranger’s page'],
    [404, 'not found'],
    [530, 'error code: 1016'],
  ])('fails where something else answers with %i', async (status, body) => {
    const url = await serve((_request, response) => response.writeHead(status).end(body));
    expect(await checkEdge(url, { lookup, hopSecret })).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining(`status ${status}, but it is not the worker`),
    });
  });

  test('fails if it doesn’t answer, or stops in the middle of an answer', async () => {
    const silent = await serve(() => undefined);
    expect(await checkEdge(silent, { lookup, hopSecret, timeoutMs: LIMIT_MS })).toMatchObject({
      status: 'failed',
      detail: 'no answer within 0.3 s',
    });
    const halting = await serve((_request, response) => response.writeHead(404).write('{'));
    expect(await checkEdge(halting, { lookup, hopSecret, timeoutMs: LIMIT_MS })).toMatchObject({
      status: 'failed',
    });
  });

  /** A server that gives one answer; `ask` asks it for a site, as an edge. */
  async function edge(answer: { status: number; type?: string; body?: string }) {
    const url = await serve((_request, response) =>
      response.writeHead(answer.status, { 'content-type': answer.type ?? 'text/plain' }).end(answer.body),
    );
    const ask = (serving?: boolean) =>
      askEdge(
        { hostnames: { edge: 'shop.example.net', origin: 'o', preview: 'p' }, loaderToken: 'lt_1', serving },
        { edgePublicUrl: `http://{host}:${url.port}`, lookup, hopSecret, timeoutMs: LIMIT_MS },
      );
    return { url, ask };
  }

  test.each<[string, Parameters<typeof edge>[0], boolean | undefined, boolean]>([
    ['its loader', { status: 200, type: 'text/javascript' }, true, true],
    ['a page of a stranger', { status: 200, type: 'text/html' }, true, false],
    ['no such loader yet', { status: 404, body: 'urn:tagyard:problem:unknown_loader' }, true, false],
    ['that its serving is off', { status: 403, body: 'urn:tagyard:problem:serving_off' }, false, true],
    ['a loader although its serving is off', { status: 200, type: 'text/javascript' }, false, false],
  ])('answers for a site with %s', async (_what, answer, serving, served) => {
    const { ask, url } = await edge(answer);
    expect(await ask(serving)).toEqual({
      served,
      detail: `shop.example.net:${url.port} answers for the site’s loader with status ${answer.status}`,
    });
  });

  test('doesn’t answer for a site within the time limit', async () => {
    const { port } = await serve(() => undefined);
    const answer = await askEdge(
      { hostnames: { edge: 'shop.example.net', origin: 'o', preview: 'p' }, loaderToken: 'lt_1' },
      { edgePublicUrl: `http://{host}:${port}`, lookup, hopSecret, timeoutMs: LIMIT_MS },
    );
    expect(answer).toMatchObject({
      served: false,
      detail: expect.stringContaining('no answer within 0.3 s'),
    });
  });
});

/** Every file that can send a request, and whether it reaches the edge: such a request bears the probe mark. */
const SENDERS: Readonly<Record<string, string>> = {
  'edge/verification/visit.ts': 'marked',
  'gitops/host-report/edge-visit.ts': 'marked',
  'gitops/host-report/visit.ts': 'marked',
  'edge/verification/client.ts': 'to the verification worker',
  'edge/verification/worker.ts': 'only passes fetch to visit.ts',
  'gitops/appliers/containers/health.ts': 'to containers',
  'gitops/appliers/proxy/nginx/daemon.ts': 'to nginx on loopback',
  'gitops/appliers/proxy/nginx/lost-tree.ts': 'to nginx on loopback',
  'gitops/appliers/proxy/probe.ts':
    'to the proxy, for origins and challenges: it forwards neither to the edge',
  'base/http/client-errors.ts': 'sends nothing',
  'gitops/cli/instance/fetch-whole.ts': 'to the daemons',
  'gitops/cli/logs/requests.ts': 'to management',
  'gitops/cli/up/settled.ts': 'to the provisioner',
  'gitops/clients/acme-http.ts': 'to a certificate authority',
  'gitops/clients/cloudflare-transport.ts': 'to Cloudflare’s API',
  'gitops/kubernetes/client/agents.ts': 'to a cluster’s API server',
  'base/client/retry.ts': 'to management',
  'gitops/kubernetes/gateway/certificates.ts': 'sends nothing',
  'gitops/kubernetes/gateway/health.ts': 'sends nothing',
  'gitops/host-report/gateway-check.ts': 'to origins, which are no names of the edge',
  'gitops/host-report/preview-path.ts': 'to preview servers',
  'gitops/host-report/served-certificate.ts': 'a TLS handshake without a request',
  'gitops/report/common-checks.ts': 'to services whose clock is compared',
  'management/clients/provisioner-client.ts': 'to the provisioner',
  'management/preflight.ts': 'to the provisioner, the verification worker and the login keys',
  'management/clients/webhook-client.ts': 'to receivers of webhooks',
  'management/http/jwks.ts': 'to the identity provider',
  'management/raw-objects/s3.ts': 'to the bucket of the raw logs',
};

const SENDS =
  /(?<!async |git\.)\bfetch\(|^import (?!type).*from '(?:undici|node:(?:http|https|tls))';|import\('undici'\)/m;

test('every request of our own to the edge bears the probe mark', async () => {
  const found: string[] = [];
  for await (const file of glob('{base,edge/verification,gitops,management}/**/*.ts', {
    exclude: (name) => /(?:^|\/)(?:generated|embedded|console|snippets)$/.test(name),
  })) {
    const source = await readFile(file, 'utf8');
    if (SENDS.test(source)) found.push(file);
  }
  expect(found.sort()).toEqual(Object.keys(SENDERS).sort());
  for (const [file, use] of Object.entries(SENDERS)) {
    if (use === 'marked') expect(await readFile(file, 'utf8')).toMatch(/PROBE_MARK|\bmark\?\.\(/);
  }
});

test('the check of Docker’s bridge names its address, and fails if Docker doesn’t answer', async () => {
  expect(await checkDockerBridge(async () => '172.17.0.1')).toEqual({
    name: 'docker_bridge',
    status: 'passed',
    detail: 'containers reach the proxy at 172.17.0.1',
    fix: null,
  });
  const away = async () => {
    throw new Error('connect ENOENT');
  };
  expect(await checkDockerBridge(away)).toMatchObject({
    status: 'failed',
    fix: expect.stringContaining('start Docker'),
  });
});
