import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkPreview } from '../../../gitops/host-report/part-checks.ts';
import { checkPreviewPath } from '../../../gitops/host-report/preview-path.ts';
import { loadedManifest } from '../../support/manifest.ts';

const NAME = 'acme-shop-preview-01234';
/** Not a multiple of three: the check must round the third that it reserves to whole milliseconds. */
const LIMIT_MS = 6_500;
/** The limit in tests with servers that never answer. */
const SHORT_MS = 151;
let stack: AsyncDisposableStack;
beforeEach(() => {
  stack = new AsyncDisposableStack();
});
afterEach(() => stack.disposeAsync());

/** A site whose processing server answers like this. */
async function siteWith(answer: RequestListener, extra: Parameters<typeof loadedManifest>[2] = {}) {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const manifest = loadedManifest('acme-shop', 0, {
    ports: { processing: port, preview: 1 + 1024 },
    ...extra,
  });
  const slots = { addressOf: () => '127.0.0.1', edition: () => 0, copy: () => slots };
  const settings = (originPort: number) => ({ slots, originPort, previewNameOf: () => NAME });
  return { manifest, settings };
}

const status =
  (code: number): RequestListener =>
  (_request, response) =>
    response.writeHead(code).end();

async function listen(server: tls.Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  stack.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('the path from the processing server to the preview server', () => {
  test('is well if the preview server’s 404 arrives, for a path that the processing server hands over', async () => {
    const paths: (string | undefined)[] = [];
    const { manifest, settings } = await siteWith((request, response) => {
      paths.push(request.url);
      response.writeHead(404).end('Not Found');
    });
    const deps = { containerSettings: settings(9), gateway: async () => '127.0.0.1' };
    expect(await checkPreviewPath(manifest, deps, LIMIT_MS)).toEqual({ problem: null, fix: null });
    expect(paths).toEqual([expect.stringMatching(/^\/gtm\//)]);
  });

  test.each([
    [400, /runs without PREVIEW_SERVER_URL/, /^Run tagyard apply/],
    [502, /reaches the proxy, but the preview server doesn’t answer/, /preview container/],
  ])('is reported if the processing server answers %i', async (code, problem, fix) => {
    const { manifest, settings } = await siteWith(status(code));
    const deps = { containerSettings: settings(9), gateway: async () => '127.0.0.1' };
    expect(await checkPreviewPath(manifest, deps, LIMIT_MS)).toEqual({
      problem: expect.stringMatching(problem),
      fix: expect.stringMatching(fix),
    });
  });

  test.each([
    ['without a status', 'HTTP/1.1 \r\n\r\n', /^processing server \d+ answers, but not by HTTP: /],
    ['without HTTP', 'hello\r\n', /^processing server \d+ answers, but not by HTTP: /],
    ['with nothing', '', /^processing server \d+ doesn’t answer: /],
  ])('is reported if the processing server answers %s', async (_what, text, problem) => {
    const { manifest, settings } = await siteWith(({ socket }) => socket.end(text));
    const deps = { containerSettings: settings(1), gateway: async () => null };
    expect(await checkPreviewPath(manifest, deps, LIMIT_MS)).toEqual({
      problem: expect.stringMatching(problem),
      fix: 'See tagyard status for its container.',
    });
  });

  test('is reported if the processing server doesn’t answer; for a preview on demand: check again', async () => {
    const silent: RequestListener = () => undefined;
    const plain = await siteWith(silent);
    const asked = { ...plain, deps: { containerSettings: plain.settings(1), gateway: async () => null } };
    expect(await checkPreviewPath(asked.manifest, asked.deps, SHORT_MS)).toMatchObject({
      problem: expect.stringContaining('no answer in time'),
    });
    const lazy = await siteWith(silent, { resources: { preview: { onDemand: true } } });
    const deps = { containerSettings: lazy.settings(1), gateway: async () => null };
    expect(await checkPreviewPath(lazy.manifest, deps, SHORT_MS)).toMatchObject({
      fix: expect.stringContaining('Run the check again'),
    });
    // The health of the host is asked for often, and must not keep preview servers running.
    expect(await checkPreview(lazy.manifest, deps)).toMatchObject({ name: 'preview', status: 'skipped' });
  });

  test('is reported with what the engine lacks, if it has no default bridge', async () => {
    const { manifest, settings } = await siteWith(status(500));
    const containerSettings = { ...settings(1), ownNetwork: true };
    expect(
      await checkPreviewPath(manifest, { containerSettings, gateway: async () => null }, LIMIT_MS),
    ).toEqual({
      problem: expect.stringContaining('status 500'),
      fix: expect.stringMatching(/^Remove "bridge": "none" from .*daemon\.json/),
    });
  });

  test('is reported in time even if Docker doesn’t answer', async () => {
    const { manifest, settings } = await siteWith(status(500));
    const gateway = () => new Promise<never>(() => undefined);
    expect(await checkPreviewPath(manifest, { containerSettings: settings(1), gateway }, SHORT_MS)).toEqual({
      problem: expect.stringContaining('status 500'),
      fix: expect.stringMatching(/^Check that Docker answers/),
    });
  });

  test('is reported as a failed part of the host, with the site and what to do', async () => {
    const { manifest, settings } = await siteWith(status(500));
    const deps = { containerSettings: settings(1), gateway: async () => null };
    expect(await checkPreview(manifest, deps)).toMatchObject({
      name: 'preview',
      status: 'failed',
      detail: expect.stringContaining('acme-shop: '),
      fix: expect.stringContaining('CONTAINER_CA_FILE'),
    });
  });
});

describe('a processing server that answers 500', () => {
  const check = async (port: number) => {
    const { manifest, settings } = await siteWith(status(500));
    const deps = { containerSettings: settings(port), gateway: async () => '127.0.0.1' };
    const found = await checkPreviewPath(manifest, deps, LIMIT_MS);
    expect(found.problem).toContain(`doesn’t reach the preview server as ${NAME} (status 500)`);
    return found.fix;
  };
  const pem = (part: string) => readFile(new URL(`../../support/tls/localhost.${part}.pem`, import.meta.url));

  test('is explained by a proxy that doesn’t listen on Docker’s bridge', async () => {
    const server = tls.createServer();
    const port = await listen(server);
    await new Promise((done) => server.close(done));
    expect(await check(port)).toMatch(
      /^The proxy doesn’t listen on 127\.0\.0\.1:\d+: add .* to PROXY_LISTEN/,
    );
  });

  test('is explained by a proxy that doesn’t serve the name', async () => {
    const refuse = tls.createServer({ SNICallback: (_name, done) => done(new Error('unknown name')) });
    expect(await check(await listen(refuse))).toMatch(
      /doesn’t serve acme-shop-preview-01234: run tagyard apply/,
    );
  });

  test('is explained by a firewall if this host itself reaches the proxy', async () => {
    const server = tls.createServer({ cert: await pem('cert'), key: await pem('key') });
    expect(await check(await listen(server))).toMatch(/^Allow connections from the sites’ bridges/);
  });
});
