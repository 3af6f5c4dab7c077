import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { buildImage, type ImageTarget, imageContext, TARGETS } from '../../../deploy/images/images.ts';
import { packTree } from '../../../deploy/package/pack.ts';
import { describeWith } from '../../support/components.ts';
import { baseImage } from '../../support/containers/base-image.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/package/folder.ts';

// Time for two installations and five images while other test pools run.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 900_000 });

const NAME = `tagyard-test-part-${process.pid}`;
const BASE = `tagyard-test/part-base-${process.pid}`;
const tagOf = (target: ImageTarget) => `tagyard-test/part-${process.pid}-${target}`;
const TIMEOUT = { timeoutMs: 300_000, intervalMs: 200 };

const docker = async (...args: string[]) => (await execa('docker', args, { all: true })).all;
const inspected = z.tuple([
  z.object({
    State: z.object({
      Status: z.string(),
      ExitCode: z.number(),
      Health: z.object({ Status: z.string() }).optional(),
    }),
    Config: z.object({ User: z.string() }),
  }),
]);
const inspect = async () => inspected.parse(JSON.parse(await docker('inspect', NAME)))[0];

/** The settings with which each part is started. None of the systems that they name is there. */
async function settings(target: ImageTarget): Promise<Record<string, string>> {
  const identity = await generateIdentity();
  const common = {
    SITES_REPO: '/var/lib/tagyard/sites.git',
    INFRA_SECRET: 'a-secret',
    EDGE_DOMAIN: 'edge.example.net',
  };
  if (target === 'verification') return { VERIFICATION_SECRET: 'a-secret' };
  if (target === 'embedded') return {};
  if (target === 'gateway')
    return {
      GATEWAY_NAMESPACE: 'gateways',
      POD_NAME: 'gateway-1',
      KUBECONFIG: '/var/lib/tagyard/none',
    };
  if (target === 'management')
    return {
      ...common,
      // No server listens there. The embedded database, which could run in memory, isn't in this image.
      DATABASE_URL: 'postgres://api@127.0.0.1:9/none',
      INFRA_PROVISIONER_URL: 'http://127.0.0.1:9',
      AUTH_JWKS_URL: 'http://127.0.0.1:9/jwks.json',
      AUTH_ISSUER: 'https://login.example.test/',
      AUTH_AUDIENCE: 'tagyard',
      AGE_RECIPIENT: await identityToRecipient(identity),
      ORIGIN_DOMAIN: 'origin.example.net',
      TAG_SERVER_IMAGE: `sha256:${'a'.repeat(64)}`,
    };
  return common;
}

describeWith(['docker', 'nginx'], 'the images of the parts', () => {
  const scratch = temporaryFolder();
  const context = join(scratch.path, 'context');
  let base: AsyncDisposable;
  beforeAll(async () => {
    base = await baseImage(BASE);
    await imageContext(await packTree(scratch.path), context, process.arch === 'arm64' ? 'arm64' : 'amd64');
    for (const target of TARGETS) {
      const bytes = await buildImage(context, { target, tag: tagOf(target), base: BASE });
      console.log(`${target}: ${(bytes / 1e6).toFixed(0)} MB with this machine's base`);
    }
  });
  afterEach(() => docker('rm', '--force', '--volumes', NAME).catch(() => undefined));
  afterAll(async () => {
    for (const target of TARGETS) await docker('image', 'rm', '--force', tagOf(target));
    await base[Symbol.asyncDispose]();
    scratch[Symbol.dispose]();
  });

  async function start(target: ImageTarget): Promise<void> {
    const env = Object.entries(await settings(target)).flatMap(([name, value]) => [
      '--env',
      `${name}=${value}`,
    ]);
    const hardened = [
      '--read-only',
      '--tmpfs',
      '/tmp',
      '--cap-drop',
      'ALL',
      '--security-opt',
      'no-new-privileges',
    ];
    await docker('run', '--detach', '--name', NAME, ...hardened, ...env, tagOf(target));
  }

  test.each(['verification', 'embedded'] as const)(
    '%s becomes healthy without privileges and with a read-only root, and ends on SIGTERM',
    async (target) => {
      await start(target);
      await eventually(async () => {
        const { State } = await inspect();
        if (State.Status !== 'running') throw new Error(await docker('logs', NAME));
        expect(State.Health?.Status).toBe('healthy');
      }, TIMEOUT);
      expect((await inspect()).Config.User).toBe('65532:65532');
      await docker('stop', '--time', '60', NAME);
      // 137 would mean that the engine had to kill it.
      expect([0, 143]).toContain((await inspect()).State.ExitCode);
    },
  );

  test.each([
    ['provisioner', /provisioner: .*AGE_IDENTITY_FILE/s],
    ['gateway', /gateway: .*KUBECONFIG/s],
  ] as const)('%s ends soon after its start, and its log says what it lacks', async (target, reason) => {
    await start(target);
    await eventually(async () => expect((await inspect()).State.Status).toBe('exited'), TIMEOUT);
    expect(await docker('logs', NAME)).toMatch(reason);
  });

  test('management waits for its database, says so in its log, and ends on SIGTERM meanwhile', async () => {
    await start('management');
    await eventually(
      async () =>
        expect(await docker('logs', NAME)).toMatch(/management: waits for the database: .*127\.0\.0\.1:9/),
      TIMEOUT,
    );
    expect((await inspect()).State.Status).toBe('running');
    await docker('stop', '--time', '60', NAME);
    // 137 would mean that the engine had to kill it.
    expect((await inspect()).State.ExitCode).toBe(0);
  });

  test('the published base is named by a digest', () => {
    const text = readFileSync(join(context, 'Dockerfile'), 'utf8');
    expect(/^ARG BASE=(.*)$/m.exec(text)?.[1]).toMatch(
      /^docker\.io\/library\/node:24-[\w-]+@sha256:[0-9a-f]{64}$/,
    );
  });

  test('verification has the compatibility date and flags of its wrangler.jsonc', () => {
    const config = readFileSync(join(context, 'verification/config.capnp'), 'utf8');
    const wrangler = readFileSync(
      new URL('../../../edge/verification/wrangler.jsonc', import.meta.url),
      'utf8',
    );
    for (const [, value = ''] of wrangler.matchAll(/"compatibility_(?:date|flags)": \[?"([^"]+)"/g)) {
      expect(config).toContain(`"${value}"`);
    }
  });
});
