import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holderId } from '../../../sites/repo/lease/holder-id.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { describeWith } from '../../support/components.ts';
import { gitHttp } from '../../support/git-http.ts';

const COMMITTER = { name: 'Tagyard of Acme', email: 'tagyard@acme.test' };

describeWith('ssh', 'commits signed by an SSH key', () => {
  let dir: string;
  let bare: string;
  let server: Awaited<ReturnType<typeof gitHttp>>;
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'tagyard-signed-'));
    bare = join(dir, 'sites.git');
    server = await gitHttp(dir);
  });
  afterEach(async () => {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const git = (...args: string[]) => execFileSync('git', ['-C', bare, ...args], { encoding: 'utf8' }).trim();

  function keyOf(name: string): string {
    const path = join(dir, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', path]);
    return path;
  }

  /** A repository whose server accepts only commits that git itself verifies by this key. */
  async function demandSignatures(key: string, ...format: readonly string[]): Promise<void> {
    if (format.length > 0) execFileSync('git', ['init', '-q', '--bare', '-b', 'main', ...format, bare]);
    else await initSitesRepo(bare);
    const signers = join(dir, 'allowed-signers');
    writeFileSync(signers, `${COMMITTER.email} ${readFileSync(`${key}.pub`, 'utf8')}`);
    git('config', 'http.receivepack', 'true');
    git('config', 'gpg.ssh.allowedSignersFile', signers);
    writeFileSync(
      join(bare, 'hooks', 'pre-receive'),
      `#!/bin/sh
while read old new ref; do
  for commit in $(git rev-list "$new" --not --all); do
    git verify-commit "$commit" || { echo "$ref: commits must be signed" >&2; exit 1; }
  done
done
`,
      { mode: 0o755 },
    );
  }

  const open = (name: string, signingKey?: string) =>
    openSitesRepo({
      url: `http://127.0.0.1:${server.port}/sites.git`,
      cacheDir: join(dir, name),
      signingKey,
      committer: COMMITTER,
    });

  const change = (repo: SitesRepo, site: string, author = 'Ada', text: string | null = `x: ${author}\n`) =>
    repo.commit({
      site,
      edit: () => text,
      subject: `Change ${site}`,
      author: { name: author, email: 'ada@example.test' },
      trailers: { Site: site, Actor: author },
    });

  /** Everything about the commits but their signatures. */
  const commits = () => git('log', '--format=%an <%ae> %cn <%ce>%n%B%T', '--stat', 'main');

  test.each([
    ['SHA-1', []],
    ['SHA-256', ['--object-format=sha256']],
  ])(
    'a server that demands signatures accepts edits, many at once, and the lease (%s)',
    async (_, format) => {
      const key = keyOf('key');
      await demandSignatures(key, ...format);
      const repo = await open('mirror', key);
      await change(repo, 'acme');
      const made = await Promise.all(
        ['bea', 'cid', 'dot', 'eve'].map((site) => change(repo, site, `Author of ${site}`)),
      );
      await change(repo, 'bea', 'Ada', null);
      expect(made.every(({ changed }) => changed)).toBe(true);
      expect(git('log', '--format=%G? %GS', 'main').split('\n')).toEqual(
        Array.from({ length: 6 }, () => `G ${COMMITTER.email}`),
      );
      const lease = repo.hostLease({ host: 'tag-1', holder: await holderId(dir), takeoverTerm: undefined });
      await lease.hold();
      expect(git('log', '--format=%G?', 'refs/tagyard/hosts/tag-1')).toBe('G');
      expect((await repo.history('cid')).map(({ author, trailers }) => [author, trailers])).toEqual([
        ['Author of cid', { Site: 'cid', Actor: 'Author of cid' }],
      ]);
      expect(git('ls-tree', '--name-only', 'main')).toBe('acme.yaml\ncid.yaml\ndot.yaml\neve.yaml');
      git('fsck', '--strict');
    },
  );

  test.each([
    ['no key', () => undefined],
    ['another key', () => keyOf('other')],
  ])('that server refuses commits by %s', async (_, other) => {
    await demandSignatures(keyOf('key'));
    const repo = await open('mirror', other());
    await expect(change(repo, 'acme')).rejects.toThrow(/commits must be signed/);
    expect(git('for-each-ref')).toBe('');
  });

  test('a repository on this machine gets signed commits, and nothing else, from two processes at once', async () => {
    const key = keyOf('key');
    await demandSignatures(key);
    const both = await Promise.all(
      [1, 2].map(() => openSitesRepo({ url: bare, cacheDir: dir, signingKey: key, committer: COMMITTER })),
    );
    const sites = Array.from({ length: 8 }, (_, index) => `site-${index}`);
    await Promise.all(sites.map((site, index) => change(both[index % 2] as SitesRepo, site)));
    await change(both[0] as SitesRepo, 'site-9', '. ,;');
    expect(git('log', '--format=%G?', 'main').split('\n')).toEqual(Array.from({ length: 9 }, () => 'G'));
    expect(git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
  });

  test('signing changes nothing of a commit but its signature', async () => {
    const key = keyOf('key');
    const made = [];
    for (const signingKey of [undefined, key]) {
      await initSitesRepo(bare);
      const repo = await openSitesRepo({ url: bare, cacheDir: dir, signingKey, committer: COMMITTER });
      for (const author of ['Ada', 'Zoë “Z” \\o/', ' .,; ', '<>', "O'Neil, Jr", 'a  b']) {
        await change(repo, 'acme', author);
      }
      made.push(commits());
      rmSync(bare, { recursive: true });
    }
    expect(made[1]).toBe(made[0]);
  });

  test('a key that can’t be read ends the start', async () => {
    await expect(open('mirror', join(dir, 'missing'))).rejects.toThrow(/SITES_SIGNING_KEY_FILE: .*missing/);
  });
});
