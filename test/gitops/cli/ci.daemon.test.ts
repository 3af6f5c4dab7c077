import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { RELEASE } from '../../../base/release.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { CLI, tagyardOf } from '../../support/cli/command.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { type MemoryDaemon, memoryDaemon, READ_TOKEN } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
let url: string;
let clone: string;
beforeEach(async () => {
  daemon = await memoryDaemon({ pollSeconds: 3_600 });
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
  const custom = { customDomains: ['metrics.one.example'] };
  await daemon.call('POST', '/provision?wait=20', daemon.manifest('one', 0, custom));
  await daemon.call('POST', '/provision?wait=20', daemon.manifest('two', 1));
  daemon.applied.length = 0;
  clone = join(daemon.dir, 'clone');
  await execa('git', ['clone', '--quiet', daemon.sitesRepo, clone]);
});
afterEach(() => daemon.close());

const git = (...args: string[]) =>
  execa('git', ['-c', 'user.name=Op', '-c', 'user.email=op@example.test', ...args], { cwd: clone });
const PULL = 'refs/pull/7/merge';

/** Commits files to the checkout and to its pull request. */
async function propose(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(clone, path)), { recursive: true });
    await writeFile(join(clone, path), text);
  }
  await git('add', '.');
  await git('commit', '--quiet', '--message', 'A proposal');
  await git('push', '--quiet', 'origin', `+HEAD:${PULL}`);
}
const file = (site: string, number: number, extra: Partial<ManifestInput> = {}) =>
  formatManifest(daemon.manifest(site, number, extra));

const READER = { INFRA_SECRET: '', INFRA_READ_TOKEN: READ_TOKEN };
const ci = () => tagyardHere(url, ['ci', clone, '--ref', PULL], READER);
/** What stands below a heading. */
const below = (report: string, heading: string) =>
  report.split(`**${heading}**\n\n\`\`\`diff\n`)[1]?.split('\n```')[0]?.split('\n');

describe('tagyard ci', () => {
  test('reports what a pull request changes by site, with the read-only token alone', async () => {
    await git('push', '--quiet', 'origin', `HEAD:${PULL}`);
    const same = await ci();
    expect(same).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('nothing to change at ') });
    expect(same.stdout).toContain('2 manifests are valid.');
    await propose({ 'two.yaml': file('two', 1, { name: 'Renamed' }), 'three.yaml': file('three', 2) });
    const { exitCode, stdout } = await ci();
    expect(exitCode).toBe(2);
    expect(stdout).toMatch(/^## Tagyard: 10 changes of 2 sites at [0-9a-f]{8}\n\n3 manifests are valid\.\n/);
    const changes = below(stdout, 'Changes');
    expect(changes?.filter((line) => line.startsWith('@@'))).toEqual(['@@ three @@', '@@ two @@']);
    expect(changes).toContain('+ create dns three.example.net: dns of three.example.net');
    expect(changes).toContain('! update dns two.example.net: dns of two.example.net');
    expect(stdout).not.toContain('off the air');
    expect(daemon.applied).toEqual([]);
  });

  test('names what visitors would lose, and what holds changes', async () => {
    await writeFile(join(daemon.dir, 'freeze'), '');
    await propose({ 'one.yaml': file('one', 0), 'two.yaml': file('two', 1, { state: 'absent' }) });
    const lost = await ci();
    expect(below(lost.stdout, 'Would go off the air')).toEqual([
      ...['proxy', 'kv', 'route', 'dns'].map((target) => `- one: ${target} metrics.one.example is removed`),
      '- two: everything of it is removed',
    ]);
    expect(lost.stdout).toMatch(/\*\*Problems, and what holds 10 changes\*\*\n\n```diff\n! frozen: /);
    expect(lost.stdout).toContain('- delete dns two.example.net: remove two.example.net (held: frozen)');
    const off = { customDomains: ['metrics.one.example'], serving: false, name: 'Off' };
    await propose({ 'one.yaml': file('one', 0, off), 'two.yaml': file('two', 1) });
    expect(below((await ci()).stdout, 'Would go off the air')).toEqual([
      '- one: the edge answers nothing (serving: false)',
    ]);
  });

  test('fails for manifests that are invalid, alone or with each other, and still plans', async () => {
    await propose({
      'two.yaml': file('two', 1, { name: 'Renamed' }),
      'rival.yaml': file('rival', 1, { container: daemon.manifest('rival', 3).container }),
      'bad.yaml': file('bad', 2).replace('processing: 20004', 'processing: 80'),
    });
    const { exitCode, stdout } = await ci();
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^## Tagyard: not ready\n/);
    expect(below(stdout, 'Invalid')).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^- .*bad\.yaml:\d+: ports\.processing: /),
        `- ${clone}/two.yaml: port 20002 is also claimed by ${clone}/rival.yaml`,
      ]),
    );
    expect(below(stdout, 'Changes')).toContain('@@ two @@');
  });

  test('fails without a plan, and says why in the report', async () => {
    for (const [args, env, why] of [
      [['--ref', 'refs/pull/8/merge'], READER, 'refs/pull/8/merge'],
      [['--ref', PULL], { ...READER, INFRA_READ_TOKEN: 'another' }, 'secret'],
    ] as const) {
      const { exitCode, stdout } = await tagyardHere(url, ['ci', clone, ...args], env);
      expect(exitCode).toBe(1);
      expect(below(stdout, 'No plan')?.join('\n')).toContain(why);
    }
    const alone = await tagyardHere('', ['ci', clone]);
    expect(alone).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('nothing was planned') });
    expect(await tagyardOf(url)(['ci', '--reff', PULL])).toMatchObject({ exitCode: 64 });
  });

  test('lets no text of the repository leave its code block, or hide', async () => {
    const name = 'x\n```\n# All is well @admin \u202e.yaml';
    await propose({
      [name]: 'version: 1\nsite: "\\n```\\n@admin <img src=x>"\n',
      'evil.yaml': 'version: 1\n"```\\n\\u202e@admin": 1\n',
    });
    const { stdout } = await ci();
    const outside = stdout.replaceAll(/^```diff\n(?:[-+!@] .*\n|@@ .*\n|… .*\n)*```$/gm, '');
    expect(outside).not.toMatch(/`|admin|</);
    expect(stdout).toContain('# All is well @admin \\u202e.yaml');
    expect(stdout).not.toContain('\u202e');
  });

  test('leaves lines out of a report that a forge would refuse as too long', async () => {
    const names = Array.from({ length: 120 }, (_, number) => `site-${number + 10}`);
    await propose(Object.fromEntries(names.map((site, number) => [`${site}.yaml`, file(site, number + 10)])));
    const { exitCode, stdout } = await ci();
    expect(exitCode).toBe(2);
    expect(stdout).toContain('600 changes of 120 sites');
    expect(below(stdout, 'Changes')?.at(-1)).toMatch(/^… and \d+ more lines$/);
    expect(stdout.length).toBeLessThan(65_536);
  });
});

const step = z.object({ run: z.string().optional(), env: z.record(z.string(), z.string()).optional() });
const ACTIONS = z.object({ jobs: z.object({ report: z.object({ steps: z.array(step) }) }) });
const GITLAB = z.object({
  tagyard: z.object({ variables: z.record(z.string(), z.string()), script: z.array(z.string()) }),
});

/** The script of a workflow, and its environment before the runner has put in its own values. */
async function workflow(name: string): Promise<{ script: string; env: Record<string, string> }> {
  const path = fileURLToPath(new URL(`../../../deploy/ci/${name}.yaml`, import.meta.url));
  const text = await readFile(path, 'utf8');
  if (name === 'gitlab') {
    const { script, variables } = GITLAB.parse(parse(text)).tagyard;
    return { script: script.join('\n'), env: { ...variables, COMMENT_TOKEN: '$COMMENT_TOKEN' } };
  }
  const { steps } = ACTIONS.parse(parse(text)).jobs.report;
  const { run = '', env = {} } = steps.find(({ run }) => run !== undefined) ?? {};
  return { script: run, env };
}

describe.each([
  [
    'github-gitea',
    '/repos/acme/sites/issues/7/comments',
    (forge: string) => ({
      '${{ vars.INFRA_PROVISIONER_URL }}': url,
      '${{ secrets.INFRA_READ_TOKEN }}': READ_TOKEN,
      '${{ secrets.GITHUB_TOKEN }}': 'of-the-job',
      '${{ github.ref }}': PULL,
      '${{ github.api_url }}': forge,
      '${{ github.repository }}': 'acme/sites',
      '${{ github.event.number }}': '7',
    }),
  ],
  [
    'gitlab',
    '/projects/12/merge_requests/7/notes',
    (forge: string) => ({
      $COMMENT_TOKEN: 'of-the-job',
      $CI_API_V4_URL: forge,
      $CI_PROJECT_ID: '12',
      $CI_MERGE_REQUEST_IID: '7',
    }),
  ],
])('the workflow of %s', (name, path, valuesOf) => {
  test('comments on what its proposal changes, and fails only for what is invalid', async () => {
    const comments: { path: string | undefined; token: string | undefined; body: string }[] = [];
    const forge = createServer(async (request, response) => {
      const text = (await request.toArray()).join('');
      const { body } = z.object({ body: z.string() }).parse(JSON.parse(text));
      comments.push({ path: request.url, token: request.headers.authorization, body });
      response.writeHead(201).end();
    });
    await new Promise<void>((done) => forge.listen({ port: 0, host: '127.0.0.1' }, done));
    const { port } = forge.address() as AddressInfo; // it listens on TCP
    // The released package, as npx would run it.
    const bin = join(daemon.dir, 'bin');
    await mkdir(bin);
    const wanted = `--yes tagyard@${RELEASE.replace(/\.\d+$/, '')}`;
    const npx = `#!/bin/sh\n[ "$1 $2" = '${wanted}' ] || exit 9\nshift 2\nexec '${process.execPath}' '${CLI}' "$@"\n`;
    await writeFile(join(bin, 'npx'), npx);
    await chmod(join(bin, 'npx'), 0o755);
    const { script, env } = await workflow(name);
    const values = valuesOf(`http://127.0.0.1:${port}`);
    const filled = Object.entries(env).map(([key, text]) => [
      key,
      Object.entries(values).reduce((now, [from, to]) => now.replaceAll(from, to), text),
    ]);
    expect(JSON.stringify(filled)).not.toContain('$');
    const run = (more: Record<string, string> = {}) =>
      execa('bash', ['-e', '-c', script], {
        cwd: clone,
        reject: false,
        env: {
          PATH: [bin, dirname(process.execPath), process.env.PATH].join(delimiter),
          INFRA_PROVISIONER_URL: url,
          INFRA_READ_TOKEN: READ_TOKEN,
          ...Object.fromEntries(filled),
          ...more,
        },
      });
    try {
      const workflowFile = '.github/workflows/tagyard.yaml';
      await propose({ 'two.yaml': file('two', 1, { name: 'Renamed' }), [workflowFile]: script });
      await git('push', '--quiet', 'origin', 'HEAD:refs/merge-requests/7/head');
      expect(await run()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
      expect(comments).toMatchObject([{ path, token: 'Bearer of-the-job' }]);
      expect(comments[0]?.body).toMatch(/^## Tagyard: 5 changes of 1 site at /);
      expect(comments[0]?.body).not.toContain('Problems');
      // Of a fork: no secrets.
      expect(await run({ INFRA_READ_TOKEN: '' })).toMatchObject({ exitCode: 0 });
      expect(comments[1]?.body).toContain('nothing was planned');
      await propose({ 'two.yaml': 'version: 1\n' });
      expect(await run()).toMatchObject({ exitCode: 1 });
      expect(comments[2]?.body).toContain('not ready');
    } finally {
      forge.close();
    }
  });
});
