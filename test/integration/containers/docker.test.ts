import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Docker from 'dockerode';
import { execa } from 'execa';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { type ContainersSettings, containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { READER } from '../../../gitops/appliers/containers/docker-spec.ts';
import { KeyFiles } from '../../../gitops/appliers/containers/key-files.ts';
import { dockerBridgeGateway, isDockerUsable } from '../../../gitops/clients/docker.ts';
import { buildDemoImage } from '../../../sites/local/demo/image.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../../gitops/appliers/conformance.ts';
import { describeWith, testWith } from '../../support/components.ts';
import { containersBehaviour } from '../../support/containers/behaviour.ts';
import { containersLifecycle } from '../../support/containers/lifecycle.ts';
import { containersSettings, slotUrl } from '../../support/containers/stage.ts';
import { removeContainers, tagServerImage } from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { PRIVATE_LINE } from '../../support/service-account.ts';
import { signalContainer } from '../../support/signal.ts';
import { containerSecret } from '../../support/tag-server.ts';

const INSTANCE = 'test-docker';
const SETTINGS = containersSettings(INSTANCE, '127.82');

const TLS = new URL('../../support/tls/', import.meta.url);
const CERTIFICATE = fileURLToPath(new URL('localhost.cert.pem', TLS));
/** The name in the certificate. */
const PREVIEW_HOST = 'shop-origin.tagyard.localhost';

describeWith('docker', 'containers in Docker', () => {
  const docker = new Docker();
  const { signal } = new AbortController();
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
  });
  afterAll(async () => {
    await built[Symbol.asyncDispose]();
  });

  describe('their applier', () => {
    let home: string;
    beforeAll(async () => {
      home = await mkdtemp(join(tmpdir(), 'tagyard-docker-'));
    });
    afterAll(() => rm(home, { recursive: true }));
    const keyFiles = () => new KeyFiles(join(home, 'keys'), READER);
    const setup = async () => ({
      runtime: dockerRuntime({ docker, stopGraceSeconds: 2, keyFiles: keyFiles() }),
      image: built.image,
      kill: async (name: string) => {
        // The engine restarts a container after its process has died, but not after a kill through the engine's API.
        await signalContainer(docker, { container: name, instance: INSTANCE }, 'SIGKILL');
      },
      // Unlike a pause, this is no event for the engine: to it, the container runs.
      freeze: (name: string) => signalContainer(docker, { container: name, instance: INSTANCE }, 'SIGSTOP'),
      account: async (name: string) => {
        const script = `
          const { readFileSync } = require('node:fs');
          const { GOOGLE_APPLICATION_CREDENTIALS: path, GOOGLE_CLOUD_PROJECT: project } = process.env;
          console.log(JSON.stringify({ file: readFileSync(path, 'utf8'), project }));`;
        const { stdout } = await execa('docker', ['exec', name, '/usr/local/bin/node', '--eval', script]);
        // An inspection of the container doesn't show the key.
        expect(JSON.stringify(await docker.getContainer(name).inspect())).not.toContain(PRIVATE_LINE);
        const { Mounts } = await docker.getContainer(name).inspect();
        expect(Mounts.map(({ RW }) => RW)).toEqual([false]);
        return JSON.parse(stdout) as { file: string; project: string };
      },
      keys: () => keyFiles().names(),
      close: () => removeContainers(docker, INSTANCE),
    });
    containersBehaviour(SETTINGS, setup);
    containersLifecycle(SETTINGS, setup);

    testWith('root', 'removes a key file without a container at the next listing', async () => {
      const files = keyFiles();
      await files.write('orphan', new Secret('a key'));
      await dockerRuntime({ docker, keyFiles: files }).list(new Set(), signal);
      expect(await files.names()).toEqual([]);
    });
  });

  describe('are', () => {
    afterEach(async () => {
      await removeContainers(docker, INSTANCE);
    });

    const site = (extra: Partial<LoadedManifest> = {}) => ({
      ...loadedManifest('acme-shop'),
      image: built.image,
      ...extra,
    });
    const build = (settings: Partial<ContainersSettings> = {}) => {
      const all = { ...SETTINGS, ...settings };
      const { caFile } = all;
      return containersApplier(
        all,
        dockerRuntime({ docker, ...(caFile === undefined ? {} : { caFileOf: async () => caFile }) }),
      );
    };
    const planOf = async (applier: ReturnType<typeof build>, manifest: LoadedManifest = site()) => {
      const desired = applier.desired(manifest);
      return applier.plan(desired, await applier.observe(desired, signal)).changes;
    };
    const firstChange = async (applier: ReturnType<typeof build>, manifest: LoadedManifest) => {
      const [change] = (await planOf(applier, manifest)).toReversed();
      if (change?.desired === undefined) throw new Error('nothing to create');
      return { change, spec: change.desired.spec };
    };
    const mine = async () =>
      (await docker.listContainers({ all: true })).filter(({ Names }) =>
        Names.some((name) => name.includes(INSTANCE)),
      );

    test('recognised and kept by the next daemon', async () => {
      const { change } = await firstChange(build(), site());
      await build().apply(change, signal);
      const [before] = await mine();
      const next = build();
      const [observed] = await next.observe([], signal);
      expect(change.desired?.hash.startsWith(observed?.hash ?? 'none')).toBe(true);
      await next.apply(change, signal);
      expect((await mine()).map(({ Id }) => Id)).toEqual([before?.Id]);
    });

    test('read-only, without privileges, and not root', async () => {
      const applier = build();
      const { change } = await firstChange(applier, site());
      await applier.apply(change, signal);
      const [container] = await mine();
      const script = `
        const fs = require('node:fs');
        const write = (path) => { try { fs.writeFileSync(path, ''); return 'written'; } catch (e) { return e.code; } };
        const status = fs.readFileSync('/proc/self/status', 'utf8');
        console.log(JSON.stringify({
          uid: process.getuid(), app: write('/app/x'), etc: write('/etc/x'), tmp: write('/tmp/x'),
          capabilities: /CapBnd:\\t(\\w+)/.exec(status)[1], noNewPrivileges: /NoNewPrivs:\\t(\\d)/.exec(status)[1],
        }));`;
      const { stdout } = await execa('docker', [
        'exec',
        container?.Id ?? '',
        '/usr/local/bin/node',
        '--eval',
        script,
      ]);
      expect(JSON.parse(stdout)).toEqual({
        uid: 65532,
        app: 'EROFS',
        etc: 'EROFS',
        tmp: 'written',
        capabilities: '0000000000000000',
        noNewPrivileges: '1',
      });
    });

    test('able to reach the preview server through the host by name and TLS', async () => {
      const gateway = await dockerBridgeGateway(docker);
      if (gateway === null) throw new Error('the bridge has no address');
      const hosts: (string | undefined)[] = [];
      const proxy = createServer(
        { cert: readFileSync(CERTIFICATE), key: readFileSync(new URL('localhost.key.pem', TLS)) },
        (incoming, answer) => {
          hosts.push(incoming.headers.host);
          answer.end('through the host');
        },
      ).listen(0, gateway);
      await once(proxy, 'listening');
      try {
        const { port: originPort } = proxy.address() as AddressInfo; // it listens on TCP
        const applier = build({ originPort, caFile: CERTIFICATE });
        const manifest = site();
        const { change, spec } = await firstChange(applier, {
          ...manifest,
          hostnames: { ...manifest.hostnames, preview: PREVIEW_HOST },
        });
        expect(spec.role).toBe('processing');
        await applier.apply(change, signal);
        const { statusCode, body } = await request(`${slotUrl(spec)}/gtm/debug`);
        expect([statusCode, await body.text()]).toEqual([200, 'through the host']);
        expect(hosts).toEqual([`${PREVIEW_HOST}:${originPort}`]);
      } finally {
        proxy.closeAllConnections();
        proxy.close();
      }
    });

    test.each([
      [`sha256:${'0'.repeat(64)}`, TerminalError, 'there is no image'],
      [`127.0.0.1:1/missing@sha256:${'0'.repeat(64)}`, RetryableError, 'pulling'],
    ])('refused without their image %s', async (image, type, message) => {
      const applier = build();
      const { change } = await firstChange(applier, site({ image }));
      const error: unknown = await applier.apply(change, signal).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(type);
      expect(String(error)).toContain(message);
      expect(await mine()).toEqual([]);
    });

    test('removed completely if their port is taken', async () => {
      const applier = build();
      const { change, spec } = await firstChange(applier, site());
      const squatter = createTcpServer().listen(spec.port, spec.address);
      await once(squatter, 'listening');
      try {
        await expect(applier.apply(change, signal)).rejects.toBeInstanceOf(RetryableError);
        expect(await mine()).toEqual([]);
      } finally {
        squatter.close();
      }
      await applier.apply(change, signal);
    });

    test('replaced if they were paused, which triggers a pass', async () => {
      const applier = build();
      const { change, spec } = await firstChange(applier, site());
      await applier.apply(change, signal);
      const [before] = await mine();
      const container = docker.getContainer(before?.Id ?? '');
      const listening = new AbortController();
      let hasEvent = false;
      void applier
        .events?.(listening.signal)
        [Symbol.asyncIterator]()
        .next()
        .then(() => {
          hasEvent = true;
        });
      // A subscription that isn't complete yet misses the event of a pause.
      await eventually(async () => {
        if ((await container.inspect()).State.Paused) await container.unpause();
        await container.pause();
        expect(hasEvent).toBe(true);
      });
      listening.abort();
      const [repair] = (await planOf(applier)).toReversed();
      expect(repair).toMatchObject({ op: 'update', desired: { spec: { role: spec.role } } });
      if (repair !== undefined) await applier.apply(repair, signal);
      const after = await mine();
      expect(after.map(({ State }) => State)).toEqual(['running']);
      expect(after.map(({ Id }) => Id)).not.toEqual([before?.Id]);
    });

    test('removed if they were renamed', async () => {
      const applier = build();
      const { change } = await firstChange(applier, site());
      await applier.apply(change, signal);
      const [container] = await mine();
      await docker.getContainer(container?.Id ?? '').rename({ name: `tagyard-${INSTANCE}-renamed` });
      // The first observation finds it at the desired address and fails; the next one uses another address.
      await eventually(async () => {
        const changes = await planOf(applier);
        expect(changes.map(({ op, key }) => `${op} ${key}`)).toContain(
          `delete stray/tagyard-${INSTANCE}-renamed`,
        );
      });
    });
  });

  test('the image is built once', async () => {
    const again = await buildDemoImage({ docker, repository: built.repository });
    expect(again).toBe(built.image);
    expect(await docker.listImages({ filters: { reference: [built.repository] } })).toHaveLength(1);
  });
});

describe('whether Docker can be used', () => {
  test.each([
    [{ socketPath: '/nonexistent/docker.sock' }, /ENOENT/],
    [{ host: '192.0.2.1', port: 2375 }, /remote/],
  ])('%j: no, and why', async (options, reason) => {
    expect(await isDockerUsable(options)).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });

  test('is known in time if the engine never answers', async () => {
    const mute = createTcpServer().listen(`/tmp/tagyard-mute-${process.pid}.sock`);
    await once(mute, 'listening');
    const started = performance.now();
    const answer = await isDockerUsable({ socketPath: `/tmp/tagyard-mute-${process.pid}.sock` });
    mute.close();
    expect(answer.ok).toBe(false);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describeWith('docker', 'the engine of this machine', () => {
  test('can be used', async () => {
    expect(await isDockerUsable()).toEqual({ ok: true });
  });
});

describeWith('docker', 'Docker’s side of the contract', () => {
  const { instance } = CONFORMANCE_IDENTITY;
  const shared = new Docker();
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  beforeAll(async () => {
    built = await tagServerImage(shared, instance);
  });
  afterAll(async () => {
    await built[Symbol.asyncDispose]();
  });
  // The image is known after the build; the tests read it when they run.
  const manifest = (name: string, number: number): LoadedManifest => ({
    ...loadedManifest(name, number),
    get image() {
      return built.image;
    },
  });

  applierConformance(
    'the containers applier with Docker',
    async () => {
      await removeContainers(shared, instance);
      const docker = new Docker();
      const { modem } = docker;
      const settings = { ...SETTINGS, identity: CONFORMANCE_IDENTITY, slots: new Slots('127.96') };
      return {
        applier: containersApplier(settings, dockerRuntime({ docker, stopGraceSeconds: 2 })),
        async plantForeign({ spec }) {
          const name = `tagyard-${instance}-${spec.site}-${spec.role}-${spec.replica}-${spec.hash.slice(0, 8)}`;
          const { id } = await shared.createContainer({
            name,
            Image: built.image,
            Labels: { owner: 'else' },
          });
          return async () => {
            const { Id, Name, State, Config } = await shared.getContainer(id).inspect();
            return { Id, Name, State, Labels: Config.Labels };
          };
        },
        async breakObserve() {
          docker.modem = new Docker({ socketPath: '/nonexistent/docker.sock' }).modem;
          return async () => {
            docker.modem = modem;
          };
        },
        close: () => removeContainers(shared, instance),
      };
    },
    { change: (m) => ({ ...m, config: containerSecret({ env: '2' }) }), timeoutMs: 120_000, manifest },
  );
});
