import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { installPackage, packTree, type Tarball, THIS_NODE } from '../../deploy/package/pack.ts';
import { eventually } from '../support/eventually.ts';
import { startInstance } from '../support/instance.ts';
import { Visitor } from '../support/login/visitor.ts';
import { temporaryFolder } from '../support/package/folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// For two installations and a whole instance, while other test files run.
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
/** Makes the same installation in another folder by links to the files of its packages, in a tenth of the time. */
async function copyInstallation(from: string, into: string): Promise<void> {
  mkdirSync(into);
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(from, file), join(into, file));
  await execa('cp', ['--archive', '--link', join(from, 'node_modules'), into]);
}
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

  test('has `tagyard/client` with its types', async () => {
    const source = `import { ApiProblem, createClient, type ListItem, type paths } from 'tagyard/client';
      const [url = '', token = ''] = process.argv.slice(2);
      const api = createClient({ url, token });
      const names: string[] = [];
      const first: ListItem<'/server-containers'>[] = [];
      for await (const container of api.list('/server-containers')) {
        names.push(container.name);
        first.push(container);
      }
      const { data } = await api.get('/server-containers/{id}', { params: { path: { id: first[0]?.id ?? '' } } });
      const status: 'active' | 'verified' | 'provisioning' | undefined =
        data.status === 'active' || data.status === 'verified' ? data.status : undefined;
      const code = await api
        .post('/server-containers', { body: {} as never })
        .catch((error: unknown) => (error instanceof ApiProblem ? error.code : null));
      const path: keyof paths = '/server-containers';
      // @ts-expect-error: there is no such path
      const missing = () => api.get('/nowhere');
      // @ts-expect-error: the path has a parameter
      const without = () => api.get('/server-containers/{id}');
      // @ts-expect-error: a container has no such member
      const member = () => data.colour;
      console.log(JSON.stringify({ names, status, code, path, unused: [missing, without, member].length }));`;
    writeFileSync(join(whole, 'client.mts'), source);
    writeFileSync(join(whole, 'globals.d.ts'), 'declare const process: { argv: string[] };');
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const options = ['--module', 'nodenext', '--target', 'es2024', '--strict', '--types', ''];
    const files = ['globals.d.ts', 'client.mts'];
    const compiled = await run(whole, process.execPath, tsc, ...options, ...files);
    expect(compiled).toMatchObject({ exitCode: 0, stdout: '' });
  });

  test('has `tagyard/plugin/kit`: a plugin in a repository of its own is made, checked and run in workerd', async () => {
    const author = join(scratch.path, 'author');
    await copyInstallation(whole, author);
    await run(author, 'npm', 'pkg', 'set', 'type=module');
    // What `npm install --save-dev esbuild` adds.
    symlinkSync(join(ROOT, 'node_modules/esbuild'), join(author, 'node_modules/esbuild'));
    const made = await run(author, 'npx', '--no-install', 'tagyard', 'plugin', 'bot_score');
    expect(made).toMatchObject({ exitCode: 0, stderr: '' });
    const again = await run(author, 'npx', '--no-install', 'tagyard', 'plugin', 'bot_score');
    expect(again).toMatchObject({ exitCode: 1, stderr: 'tagyard: bot_score exists already' });

    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const options =
      '--module nodenext --target es2024 --lib es2024,dom,esnext.disposable --strict --types node --noEmit';
    const flags = [...options.split(' '), '--allowImportingTsExtensions'];
    const checked = await run(author, process.execPath, tsc, ...flags, 'bot_score/index.test.ts');
    expect(checked).toMatchObject({ exitCode: 0, stdout: '' });
    const tested = await run(author, process.execPath, '--test', 'bot_score/index.test.ts');
    expect(tested).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('pass 2') });

    const clash = `import { startStage } from 'tagyard/plugin/kit';
      const urls = ['a', 'b'].map((name) => new URL(name + '.mjs', 'file://${author}/'));
      await startStage({ plugins: urls }).catch((error) => console.log(error.message));`;
    const plugin = (name: string) => `import * as z from 'zod/mini';
      export default { name: '${name}', kind: 'mandatory', config: z.object({}), routes: [
        { method: 'GET', path: '/same', handle: () => new Response('') }] };`;
    for (const name of ['a', 'b']) writeFileSync(join(author, `${name}.mjs`), plugin(name));
    writeFileSync(join(author, 'clash.mjs'), clash);
    expect(await run(author, process.execPath, 'clash.mjs')).toMatchObject({
      exitCode: 0,
      stdout: 'a (GET /same) and b (GET /same) claim the same route',
    });
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
  const missing = /^tagyard: optional packages are not installed \(miniflare, .*\); install them: npm /;

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
    const visitor = new Visitor();
    const { url: api } = instance.run.management;
    const accounts = await visitor.visit(`${api}/session/login?returnTo=/session`);
    const loggedIn = await visitor.submit(accounts, { account: 'demo-viewer' });
    expect(JSON.parse(loggedIn.text)).toMatchObject({ subject: 'demo-viewer', isOperator: false });
    const listed = await visitor.request(`${api}/server-containers`);
    expect(await listed.json()).toMatchObject({ containers: [{ id: demo.container }] });
    const client = await run(whole, process.execPath, 'client.mjs', instance.run.management.url, demo.token);
    expect(client).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(client.stdout)).toEqual({
      names: ['Demo Shop'],
      status: 'active',
      code: 'invalid_request',
      path: '/server-containers',
      unused: 3,
    });
    const status = await run(whole, 'npx', '--no-install', 'tagyard', 'status');
    expect(status).toMatchObject({ exitCode: 0, stderr: '' });
    expect(status.stdout).toMatch(/demo-shop +serving +Ready/);
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
    // Run by its first line, as a person does: the old Node must accept the options of V8 there.
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
