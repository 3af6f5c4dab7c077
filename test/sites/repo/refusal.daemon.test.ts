import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CommitRefusedError, refusalOf } from '../../../sites/repo/errors.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { eventually } from '../../support/eventually.ts';
import { gitHttp } from '../../support/git-http.ts';
import { memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { creation, World } from '../../support/management/world.ts';

let dir: string;
let bare: string;
let server: Awaited<ReturnType<typeof gitHttp>>;
const notices: string[] = [];
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-refusal-'));
  bare = join(dir, 'sites.git');
  notices.length = 0;
  server = await gitHttp(dir);
  await initSitesRepo(bare);
  execFileSync('git', ['-C', bare, 'config', 'http.receivepack', 'true']);
});
afterEach(async () => {
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

const url = () => `http://127.0.0.1:${server.port}/sites.git`;
const open = () =>
  openSitesRepo({ url: url(), cacheDir: join(dir, 'mirror'), onNotice: (message) => notices.push(message) });
const change = (repo: SitesRepo, site: string) =>
  repo.commit({
    site,
    edit: () => `site: ${site}\n`,
    subject: `Change ${site}`,
    author: { name: 'Ada', email: 'ada@example.test' },
    trailers: {},
  });

/** A hook that refuses pushes with a file named bad.yaml, or all of them, and counts its runs. */
function refuse(what: 'bad.yaml' | 'all', repository = bare): void {
  const bad = what === 'all' ? 'true' : `git cat-file -e "$new:bad.yaml"`;
  writeFileSync(
    join(repository, 'hooks', 'pre-receive'),
    `#!/bin/sh
echo run >> '${join(dir, 'runs')}'
while read old new ref; do
  if ${bad}; then
    echo "Changes of main need a review." >&2
    printf 'Ask \\033[31mplatform@acme.test\\033[0m.\\n' >&2
    exit 1
  fi
done
`,
    { mode: 0o755 },
  );
}
const runs = () =>
  existsSync(join(dir, 'runs')) ? readFileSync(join(dir, 'runs'), 'utf8').trim().split('\n').length : 0;
const WORDS = /^Changes of main need a review\. Ask .*platform@acme\.test.*\. \(pre-receive hook declined\)$/;

test('a refusal ends the commit after one try, in the server’s words', async () => {
  refuse('all');
  const repo = await open();
  const error = await change(repo, 'acme').catch((one: unknown) => one);
  expect(error).toBeInstanceOf(CommitRefusedError);
  expect((error as CommitRefusedError).refusal).toMatch(WORDS);
  expect((error as CommitRefusedError).refusal).not.toContain('\u001b');
  expect(runs()).toBe(1);
  expect(notices).toEqual([
    expect.stringMatching(/^acme: the server .* refuses the commit: Changes of main/),
  ]);
});

test('a refusal of one edit doesn’t affect those that are pushed with it', async () => {
  refuse('bad.yaml');
  const repo = await open();
  const sites = ['a', 'b', 'bad', 'c'];
  const outcomes = await Promise.allSettled(sites.map((site) => change(repo, site)));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  const listed = execFileSync('git', ['-C', bare, 'ls-tree', '--name-only', 'main'], { encoding: 'utf8' });
  expect(listed).toBe('a.yaml\nb.yaml\nc.yaml\n');
});

test('once the server accepts it, the same commit is made', async () => {
  refuse('all');
  const repo = await open();
  await expect(change(repo, 'acme')).rejects.toThrow(CommitRefusedError);
  rmSync(join(bare, 'hooks', 'pre-receive'));
  await expect(change(repo, 'acme')).resolves.toMatchObject({ changed: true });
});

test.each([
  ['a hook', ' ! [remote rejected] 1a2b -> main (pre-receive hook declined)', 'pre-receive hook declined'],
  [
    'a protected branch',
    'remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: Commits must have verified signatures.\n ! [remote rejected] 1a2b -> main (protected branch hook declined)',
    'error: GH006: Protected branch update failed for refs/heads/main. error: Commits must have verified signatures. (protected branch hook declined)',
  ],
  ['another push', ' ! [rejected] 1a2b -> main (fetch first)', null],
  [
    'another push at the same moment',
    " ! [remote rejected] 1 -> main (cannot lock ref 'refs/heads/main')",
    null,
  ],
  ['a full disk', ' ! [remote rejected] 1a2b -> main (unpacker error)', null],
  ['no server', 'fatal: unable to access: Could not resolve host', null],
])('%s', (_, text, refusal) => {
  expect(refusalOf(new Error(text))).toBe(refusal);
});

test('the provisioner answers it with a code of its own', async () => {
  let folder = '';
  const other = await memoryDaemon({
    pollSeconds: 3_600,
    async urlUnder(root) {
      folder = root;
      const ours = await gitHttp(root);
      await server.close();
      server = ours;
      execFileSync('git', ['-C', join(root, 'sites.git'), 'config', 'http.receivepack', 'true']);
      return url();
    },
  });
  try {
    refuse('all', join(folder, 'sites.git'));
    expect(await other.call('POST', '/provision', other.manifest('acme', 1))).toMatchObject({
      status: 409,
      body: { code: 'commit_refused', detail: expect.stringMatching(WORDS) },
    });
  } finally {
    await other.close();
  }
});

test('so does management, and a creation fails with the words', async () => {
  const world = await World.open({ bare, url: url() });
  try {
    const client = await world.client();
    const create = (name: string) =>
      world.call('POST', '/server-containers', { as: 'admin', body: creation(client, `${name}.example`) });
    const { body } = await create('before');
    await eventually(async () =>
      expect(await world.call('GET', `/server-containers/${body.id}`, { as: 'admin' })).toMatchObject({
        body: { status: 'active' },
      }),
    );
    refuse('all');
    const changed = await world.call('PATCH', `/server-containers/${body.id}`, {
      as: 'admin',
      body: { name: 'Renamed' },
    });
    expect(changed).toMatchObject({
      status: 409,
      body: { code: 'commit_refused', detail: expect.stringMatching(WORDS) },
    });
    const failed = await create('after');
    expect(failed).toMatchObject({ status: 502, body: { code: 'provisioning_failed' } });
    expect(JSON.stringify(failed.body)).toContain('Changes of main need a review.');
  } finally {
    await world.close();
  }
});
