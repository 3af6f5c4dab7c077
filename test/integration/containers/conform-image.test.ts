import { readFileSync } from 'node:fs';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readEnv } from '../../conform/env.ts';
import { NotTried } from '../../conform/not-tried.ts';
import { runConform, startConform } from '../../conform/run-conform.ts';
import { runTable } from '../../conform/table.ts';
import { containerBehaviours } from '../../conform/tag-server/index.ts';
import { previewNameBehaviours } from '../../conform/tag-server/preview-name.ts';
import { openDockerRun } from '../../conform/targets/docker-run.ts';
import { pairStarter } from '../../conform/targets/pair.ts';
import { tagServerTable } from '../../conform/targets/tag-server.ts';
import { describeWith } from '../../support/components.ts';
import { startImageRegistry } from '../../support/containers/image-registry.ts';
import { changedRelease, spoiltRelease, tagServerImage } from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { signal } from '../../support/signal.ts';
import { containerConfig } from '../../support/tag-server.ts';

const ALL = containerBehaviours.map(({ name }) => name);
const PREFLIGHT = 'answers the preflight of Tag Manager’s interface with 204 and credentials, in both roles';

const DOCUMENT = readFileSync(new URL('../../../docs/conformance.md', import.meta.url), 'utf8');

describeWith('docker', 'npm run conform -- --image', () => {
  const docker = new Docker();
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  beforeAll(async () => {
    built = await tagServerImage(docker, 'test-conform');
  });
  afterAll(() => built[Symbol.asyncDispose]());

  /** The command's containers and networks that exist, of all runs. */
  async function remains(): Promise<string[]> {
    const filters = { label: ['tagyard.conform'] };
    const containers = await docker.listContainers({ all: true, filters });
    const networks = await docker.listNetworks({ filters });
    return [...containers.flatMap(({ Names }) => Names), ...networks.map(({ Name }) => Name)];
  }

  test('pulls an image, finds nothing that differs, and removes its containers', async () => {
    await using registry = await startImageRegistry(docker, built.image);
    try {
      const { exitCode, having, tables } = await runConform(['--image', registry.image]);
      expect(having('differs')).toEqual([]);
      expect([exitCode, having('same')]).toEqual([0, ALL]);
      expect(registry.reads()).toBeGreaterThan(0);
      expect(tables[0]?.subject).toContain(registry.image);
      const costs = tables[0]?.costs[0];
      expect(costs).toMatch(/^\d+ containers$/);
      // docs/conformance.md states this number in two places.
      expect(DOCUMENT.match(/\d+ containers/g)).toEqual([costs, costs]);
      expect(await remains()).toEqual([]);
    } finally {
      await docker.getImage(registry.image).remove({ force: true });
    }
  });

  test('reports what differs, with the log but without the configuration', async () => {
    const spoilt = await spoiltRelease(docker, built, 204);
    const config = containerConfig({ auth: 's3cret-c0nf0rm' });
    const run = await runConform(['--image', spoilt], { CONFORM_CONTAINER_CONFIG: config });
    expect(run.exitCode).toBe(1);
    expect(run.having('differs')).toContain(PREFLIGHT);
    expect(run.having('same').length).toBeGreaterThan(0);
    const { detail = '' } = run.rows.find(({ name }) => name === PREFLIGHT) ?? {};
    expect(detail).toMatch(/200[\s\S]*204/);
    expect(detail).toContain('CONTAINER_CONFIG');
    expect(run.output).not.toContain(config);
    expect(run.output).not.toContain('s3cret-c0nf0rm');
    expect(await remains()).toEqual([]);
  });

  const [HANDS_OVER, EVERY_PATH, REFUSES_CA] = previewNameBehaviours.map(({ name }) => name);

  test.each([
    [
      'reads no hosts file',
      `const dns = process.getBuiltinModule('node:dns');
       dns.lookup = (name, options, done) => done(new Error('no such name: ' + name));
       process.getBuiltinModule('node:module').syncBuiltinESMExports();`,
      [HANDS_OVER, EVERY_PATH, REFUSES_CA],
    ],
    ['believes every certificate', `process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';`, [REFUSES_CA]],
  ])('detects a server that %s', async (_what, code, expected) => {
    const table = tagServerTable(await changedRelease(docker, built, code), readEnv({}));
    const { rows } = await runTable(
      { ...table, behaviours: previewNameBehaviours },
      { signal: new AbortController().signal, onOpen: () => {}, onRow: () => {} },
    );
    const differing = rows.filter(({ outcome }) => outcome === 'differs');
    expect(differing.map(({ name }) => name)).toEqual(expected);
    expect(rows.map(({ outcome }) => outcome)).not.toContain('not tried');
    expect(await remains()).toEqual([]);
  });

  test('does not judge the hand-over where containers can’t reach this machine', async () => {
    const run = await openDockerRun(built.image, new AbortController().signal);
    const pairs = pairStarter({
      // In a container, this address is the container itself, so it doesn't lead to this machine.
      gateway: async () => '127.0.0.1',
      preview: () => 'http://127.0.0.1:1',
      async start(env, placement) {
        const { url, remove } = await run.start({ CONTAINER_CONFIG: containerConfig(), ...env }, placement);
        await eventually(() => fetch(`${url}/healthz`));
        return { listens: true, url, stop: remove };
      },
    });
    try {
      const { assertReachable } = await pairs.start({ trusts: true });
      await expect(assertReachable()).rejects.toThrow(NotTried);
    } finally {
      await run.removeAll();
      await pairs.close();
    }
    expect(await remains()).toEqual([]);
  });

  test.each([
    ['of a registry that can’t be reached', 'registry.invalid/tag-server:stable', "can't be pulled"],
    ['that isn’t here', `sha256:${'0'.repeat(64)}`, 'this machine has no image'],
  ])('tries nothing with an image %s', async (_what, image, reason) => {
    const { exitCode, rows, having } = await runConform(['--image', image]);
    expect(exitCode).toBe(3);
    expect(having('not tried')).toEqual(ALL);
    for (const { detail } of rows) expect(detail).toContain(reason);
    expect(await remains()).toEqual([]);
  });

  test('tries nothing without Docker, and says so', async () => {
    const { exitCode, rows } = await runConform(['--image', built.image], {
      DOCKER_HOST: 'tcp://127.0.0.1:1',
    });
    expect(exitCode).toBe(3);
    for (const { detail } of rows) expect(detail).toMatch(/did not answer.*install and start Docker/);
  });

  test('removes its containers where a signal ends it', async () => {
    const run = startConform(['--image', built.image]);
    let said = '';
    run.stdout.on('data', (chunk: Buffer) => {
      said += chunk;
    });
    await eventually(() => expect(said).toMatch(/^ {2}same /m), { timeoutMs: 120_000 });
    expect(await remains()).not.toEqual([]);
    signal(run.pid ?? 0, 'SIGINT');
    const { exitCode, stdout } = await run;
    expect(exitCode).toBe(3);
    expect(stdout).toContain('the run was interrupted');
    expect(await remains()).toEqual([]);
  });
});
