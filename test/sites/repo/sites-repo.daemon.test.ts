import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';

let dir: string;
let bare: string;
const author = { name: 'Ada', email: 'ada@example.test' };
const edit = (site: string, text: string | null, trailers: Record<string, string> = { Site: site }) => ({
  site,
  edit: () => text,
  subject: `Change ${site}`,
  author,
  trailers,
});

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-repo-'));
  bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** The same suite on a local repository and on one behind a URL. */
describe.each([
  ['local', (at: string) => at],
  ['remote', (at: string) => pathToFileURL(at).href],
])('a %s sites repository', (_kind, urlOf) => {
  const open = (name: string): Promise<SitesRepo> =>
    openSitesRepo({ url: urlOf(bare), cacheDir: join(dir, name), pollSeconds: 0.05 });

  test('has no revision at first, commits a file, and reads it back with its trailers', async () => {
    const repo = await open('a');
    expect(await repo.head()).toBeNull();
    const { revision, changed } = await repo.commit(edit('acme', 'x: ä\n', { Site: 'acme', Actor: 'ada' }));
    expect(changed).toBe(true);
    expect(await repo.head()).toBe(revision);
    expect(await repo.read(revision)).toMatchObject([{ site: 'acme', path: 'acme.yaml', text: 'x: ä\n' }]);
    expect(await repo.history('acme')).toMatchObject([
      { revision, author: 'Ada', subject: 'Change acme', trailers: { Site: 'acme', Actor: 'ada' } },
    ]);
    expect(execFileSync('git', ['-C', bare, 'fsck', '--strict'], { encoding: 'utf8' })).not.toContain(
      'error',
    );
  });

  test('answers the same history with and without an index, also for later commits', async () => {
    const repo = await open('a');
    for (const text of ['x: 1\n', 'x: 2\n']) {
      await repo.commit(edit('acme', text));
      await repo.commit(edit('other', text));
    }
    const before = await repo.history('acme');
    expect(before).toHaveLength(2);
    await repo.indexHistory();
    const at = urlOf(bare) === bare ? bare : join(dir, 'a', 'sites.git');
    execFileSync('git', ['-C', at, 'commit-graph', 'verify']);
    expect(await repo.history('acme')).toEqual(before);
    const { revision } = await repo.commit(edit('acme', 'x: 3\n'));
    await repo.indexHistory();
    expect(await repo.history('acme')).toMatchObject([{ revision }, ...before]);
  });

  test('counts the commits up to a revision, in whatever order revisions are asked for', async () => {
    const repo = await open('a');
    const { revision: first } = await repo.commit(edit('acme', 'x: 1\n'));
    await repo.commit(edit('other', 'x: 1\n'));
    const { revision: third } = await repo.commit(edit('acme', 'x: 2\n'));
    const from = await repo.ordinal(first);
    expect(await repo.ordinal(third)).toBe(from + 2);
    expect(await repo.ordinal(first)).toBe(from);
    expect(await repo.ordinal(third)).toBe(from + 2);
    const other = await open('b');
    await other.head();
    expect(await other.ordinal(third)).toBe(from + 2);
  });

  test('makes no commit for the same text, and deletes a file for null', async () => {
    const repo = await open('a');
    const first = await repo.commit(edit('acme', 'x: 1\n'));
    expect(await repo.commit(edit('acme', 'x: 1\n'))).toEqual({ revision: first.revision, changed: false });
    const gone = await repo.commit(edit('acme', null));
    expect(await repo.read(gone.revision)).toEqual([]);
    expect([...(await repo.versions('acme', gone))]).toEqual([
      [gone.revision, null],
      [first.revision, 'x: 1\n'],
    ]);
    for (const [since, count] of [
      [first.revision, 1],
      ['1'.repeat(40), 2],
    ] as const)
      expect((await repo.versions('acme', { revision: gone.revision, since })).size).toBe(count);
    expect(await repo.readSite(first.revision, 'acme')).toMatchObject({ text: 'x: 1\n' });
  });

  test('loses no commit of two concurrent writers', async () => {
    const [one, two] = await Promise.all([open('a'), open('b')]);
    const sites = Array.from({ length: 12 }, (_, index) => `site-${index}`);
    await Promise.all(
      sites.map((site, index) => (index % 2 === 0 ? one : two).commit(edit(site, `n: ${site}\n`))),
    );
    const head = await one.head();
    expect((await one.read(head ?? '')).map(({ site }) => site).sort()).toEqual([...sites].sort());
    expect(
      execFileSync('git', ['-C', bare, 'rev-list', '--count', 'main'], { encoding: 'utf8' }).trim(),
    ).toBe('12');
  });

  test('pushes concurrent edits together, each as its own commit; one that throws fails alone', async () => {
    execFileSync('git', ['-C', bare, 'config', 'core.logAllRefUpdates', 'always']);
    const repo = await open('a');
    const sites = Array.from({ length: 40 }, (_, index) => `site-${index}`);
    const refused = repo.commit({
      ...edit('refused', null),
      edit: () => {
        throw new Error('not like this');
      },
    });
    const [commits] = await Promise.all([
      Promise.all(sites.map((site) => repo.commit(edit(site, `n: ${site}\n`)))),
      expect(refused).rejects.toThrow('not like this'),
    ]);
    const list = (...args: string[]) =>
      execFileSync('git', ['-C', bare, ...args], { encoding: 'utf8' })
        .trim()
        .split('\n');
    expect(list('rev-list', '--reverse', 'main')).toEqual(commits.map(({ revision }) => revision));
    expect(list('log', '--reverse', '--format=%s', 'main')).toEqual(sites.map((site) => `Change ${site}`));
    expect(list('reflog', 'main').length).toBeLessThan(5);
  });

  test('edits the newest text when two writers change one file', async () => {
    const [one, two] = await Promise.all([open('a'), open('b')]);
    const append = (repo: SitesRepo, line: string) =>
      repo.commit({ ...edit('acme', null), edit: (current) => `${current ?? ''}${line}\n` });
    await Promise.all(
      Array.from({ length: 5 }, (_, index) => [append(one, `a${index}`), append(two, `b${index}`)]).flat(),
    );
    const text = (await one.readSite((await one.head()) ?? '', 'acme'))?.text ?? '';
    expect(text.trim().split('\n').sort()).toEqual([
      'a0',
      'a1',
      'a2',
      'a3',
      'a4',
      'b0',
      'b1',
      'b2',
      'b3',
      'b4',
    ]);
  });

  test('yields each change of the branch, an operator’s push included', async () => {
    const repo = await open('a');
    await repo.commit(edit('acme', 'x: 1\n'));
    const stop = new AbortController();
    const revisions = repo.changes(stop.signal, () => undefined);
    const first = await revisions.next();
    const clone = join(dir, 'clone');
    execFileSync('git', ['clone', '-q', bare, clone]);
    const person = ['-c', 'user.name=Op', '-c', 'user.email=op@example.test'];
    for (const args of [
      ['rm', '-q', 'acme.yaml'],
      ['commit', '-qm', 'remove'],
      ['push', '-q', 'origin', 'HEAD:main'],
    ])
      execFileSync('git', ['-C', clone, ...person, ...args]);
    const second = await revisions.next();
    stop.abort();
    expect(second.value).not.toBe(first.value);
    expect(await repo.read(second.value ?? '')).toEqual([]);
    expect(await repo.isAncestor(first.value ?? '', second.value ?? '')).toBe(true);
    expect(await repo.isAncestor(second.value ?? '', first.value ?? '')).toBe(false);
  });

  test('removes line breaks of a caller’s input from the commit message', async () => {
    const repo = await open('a');
    await repo.commit({
      ...edit('acme', 'x: 1\n', { Site: 'acme', Reason: 'one\nActor: root' }),
      author: { name: 'Eve <root>\n', email: 'eve@x\n.test' },
    });
    const [entry] = await repo.history('acme');
    expect(entry?.trailers).toEqual({ Site: 'acme', Reason: 'one Actor: root' });
    expect(entry?.author).toBe('Eve root');
  });
});

test('refuses a path without a repository', async () => {
  await expect(openSitesRepo({ url: join(dir, 'nothing'), cacheDir: dir })).rejects.toThrow(
    /neither a bare git repository/,
  );
});
