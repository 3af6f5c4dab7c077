import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { installPackage, packTree, type Tarball, THIS_NODE } from '../../deploy/package/pack.ts';
import { eventually } from '../support/eventually.ts';
import { startInstance } from '../support/instance.ts';
import { temporaryFolder } from '../support/package/folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// Two installations and a whole instance, beside other pools.
vi.setConfig({ testTimeout: 360_000, hookTimeout: 600_000 });

const scratch = temporaryFolder();
/** A production host's folder, without the embedded parts. */
const host = join(scratch.path, 'host');
/** A folder with all parts. */
const whole = join(scratch.path, 'whole');
let tarball: Tarball;
beforeAll(async () => {
  tarball = await packTree(scratch.path);
  await installPackage(tarball, host, { omitOptional: true });
  await installPackage(tarball, whole);
});
afterAll(() => scratch[Symbol.dispose]());

const at = (folder: string, ...path: string[]) => join(folder, 'node_modules/tagyard', ...path);
const run = (cwd: string, file: string, ...args: string[]) =>
  execa(file, args, { cwd, reject: false, env: { ...THIS_NODE, TAGYARD_HOME: join(cwd, 'home') } });

describe('the package', () => {
  test('has no TypeScript but declarations, no test, and is under 3 MB', () => {
    const files = readdirSync(at(whole), { recursive: true, encoding: 'utf8' });
    expect(files.filter((path) => /(?<!\.d)\.ts$/.test(path))).toEqual([]);
    expect(files.filter((path) => /\btest\b|vitest/.test(path))).toEqual([]);
    expect(tarball.bytes).toBeLessThan(3_000_000);
  });

  test('has `tagyard/plugin` with its types', async () => {
    const source = `import { definePlugin } from 'tagyard/plugin';
      import * as z from 'zod/mini';
      const config = z.strictObject({ greeting: z._default(z.string(), 'hello') });
      export default definePlugin({ name: 'a', kind: 'mandatory', config, routes: [{
        method: 'GET', path: '/a', handle: (_input, { settings }) => new Response(settings.greeting),
      }] });
      // @ts-expect-error: a plugin has a name
      definePlugin({ kind: 'mandatory', config, routes: [] });`;
    writeFileSync(join(whole, 'plugin.mts'), source);
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const options = ['--module', 'nodenext', '--target', 'es2024', '--strict', '--types', '', '--noEmit'];
    const checked = await run(whole, process.execPath, tsc, ...options, 'plugin.mts');
    expect(checked).toMatchObject({ exitCode: 0, stdout: '' });
    const used = await run(
      whole,
      process.execPath,
      '--input-type=module',
      '--eval',
      "console.log(typeof (await import('tagyard/plugin')).definePlugin)",
    );
    expect(used.stdout).toBe('function');
  });

  test('answers with its version and its help', async () => {
    expect(await run(host, 'npx', '--no-install', 'tagyard', '--version')).toMatchObject({
      exitCode: 0,
      stdout: tarball.name.replace(/^tagyard-|\.tgz$/g, ''),
    });
    expect((await run(host, 'npx', '--no-install', 'tagyard', '--help')).stdout).toContain('Usage: tagyard');
  });

  test('checks a manifest without the embedded parts', async () => {
    const example = at(host, 'sites/example.yaml');
    expect(await run(host, 'npx', '--no-install', 'tagyard', 'validate', example)).toMatchObject({
      exitCode: 0,
      stderr: '',
    });
  });
});

describe('without the optional packages', () => {
  const missing = /^tagyard: this installation has no embedded parts \(miniflare, .*\); install them: npm /;

  test('`up` says what is missing, and starts nothing', async () => {
    const { exitCode, stderr } = await run(host, 'npx', '--no-install', 'tagyard', 'up');
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(missing) });
    expect(existsSync(join(host, 'home'))).toBe(false);
  });

  test('every other part loads: it reads its settings, and names what it misses', async () => {
    for (const part of ['gitops/main.js', 'management/main.js']) {
      const { exitCode, stderr } = await run(host, process.execPath, at(host, 'dist', part));
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/^(provisioner|management): .*(SITES_REPO|INFRA)/s);
    }
  });
});

describe('npx tagyard up', () => {
  test('in an empty folder runs the whole instance', async () => {
    const env = {
      ...THIS_NODE,
      TAGYARD_PROXY: 'embedded',
      TAGYARD_CONTAINERS: 'process',
      npm_config_offline: 'true',
    };
    const command = { file: 'npx', args: ['--no-install', 'tagyard', 'up'], cwd: whole };
    await using instance = await startInstance(join(whole, 'home'), env, command);
    const { demo, edge } = instance.run;
    const page = await fetch(`http://127.0.0.1:${new URL(demo.pageUrl).port}/`);
    const text = await page.text();
    expect({ status: page.status, text }).toMatchObject({
      status: 200,
      text: expect.stringContaining('<script'),
    });
    const [, loader = ''] = /(\/l\/[\w.]+\.js)/.exec(text) ?? [];
    const host = /https?:\/\/([\w.-]+):\d+\/l\//.exec(text)?.[1] ?? '';
    // KV reaches the worker a moment after the site is active.
    await eventually(async () => {
      const served = await request(new URL(loader, edge.url), { headers: { host } });
      expect({ status: served.statusCode, script: await served.body.text() }).toMatchObject({
        status: 200,
        script: expect.stringContaining('tagyard'),
      });
    });
    const status = await run(whole, 'npx', '--no-install', 'tagyard', 'status');
    expect(status).toMatchObject({ exitCode: 0, stderr: '' });
    expect(status.stdout).toMatch(/demo-shop +Ready/);
  });
});

/** Versions of Node on this machine that are too old. */
const old = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'node'))
  .filter((path) => existsSync(path))
  .filter((path) => Number(execFileSync(path, ['--print', 'process.versions.node.split(".")[0]'])) < 22);

describe.skipIf(old.length === 0)('on a Node that is too old', () => {
  const tagyard = (...args: string[]) => run(whole, old[0] ?? '', at(whole, 'dist/gitops/cli.js'), ...args);

  test('version and help answer', async () => {
    const installed = join(whole, 'node_modules/.bin/tagyard');
    // As a person runs it: the first line of the file names V8's options.
    const PATH = [dirname(old[0] ?? ''), process.env.PATH].join(delimiter);
    expect(await execa(installed, ['--version'], { env: { PATH } })).toMatchObject({
      exitCode: 0,
      stderr: '',
    });
    expect(await tagyard('--version')).toMatchObject({ exitCode: 0, stderr: '' });
    expect((await tagyard('status', '--help')).stdout).toContain('Usage: tagyard status');
  });

  test.each(['up', 'status', 'validate nothing.yaml'])(
    '%s says in one line which Node it needs',
    async (words) => {
      const { exitCode, stderr } = await tagyard(...words.split(' '));
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringMatching(
          /^tagyard: Node [\d.]+ is too old: tagyard needs Node [\d.]+ or newer; .*$/,
        ),
      });
    },
  );
});
