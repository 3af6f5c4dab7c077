import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GitDir } from '../../../sites/repo/git-dir.ts';
import { History } from '../../../sites/repo/history.ts';
import { gitOf, initSitesRepo } from '../../../sites/repo/mirror.ts';
import { SiteFiles } from '../../../sites/repo/site-files.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { eventually } from '../../support/eventually.ts';

/** Texts whose blob id starts with 17: git estimates the number of loose objects by that folder (git-gc(1), `gc.auto`). */
function countedTexts(count: number): string[] {
  const texts: string[] = [];
  for (let number = 0; texts.length < count; number += 1) {
    const text = `n: ${number}\n`;
    if (hash('sha1', `blob ${text.length}\0${text}`).startsWith('17')) texts.push(text);
  }
  return texts;
}

test('a repository with many loose objects is packed, and loses nothing', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-gc-'));
  try {
    const bare = join(dir, 'sites.git');
    await initSitesRepo(bare);
    const repo = await openSitesRepo({ url: bare, cacheDir: dir, gcObjects: 256 });
    const texts = countedTexts(4);
    const author = { name: 'Op', email: 'op@example.test' };
    const revisions: string[] = [];
    for (const text of texts) {
      const edit = { site: 'acme', edit: () => text, subject: 'Change', author, trailers: {} };
      revisions.push((await repo.commit(edit)).revision);
    }
    const loose = () =>
      Number(
        /^count: (\d+)/m.exec(
          execFileSync('git', ['-C', bare, 'count-objects', '-v'], { encoding: 'utf8' }),
        )?.[1],
      );
    expect(loose()).toBe(12);
    const stop = new AbortController();
    const changes = repo.changes(stop.signal, () => undefined);
    await changes.next();
    await eventually(() => expect(loose()).toBe(0));
    stop.abort();
    await changes.return(null);
    const found = await Promise.all(revisions.map((revision) => repo.readSite(revision, 'acme')));
    expect(found.map((file) => file?.text)).toEqual(texts);
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('packing and indexing may be silent for many minutes, other commands may not', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-gc-'));
  try {
    await initSitesRepo(dir);
    const limits: (readonly [verb: string | undefined, minutes: number])[] = [];
    const run = gitOf(dir, () => undefined);
    const recorded: typeof run = (args, input, options) => {
      const verb = args.find((arg) => ['gc', 'commit-graph', 'rev-parse'].includes(arg));
      limits.push([verb, (options?.silenceMs ?? 60_000) / 60_000]);
      return run(args, input, options);
    };
    const git = new GitDir(dir, recorded, null);
    await git.pack(500);
    await new History(git, new SiteFiles(git)).index();
    await git.run(['rev-parse', '--git-dir']);
    expect(limits).toEqual([
      ['gc', 30],
      ['commit-graph', 30],
      ['rev-parse', 1],
    ]);
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
});
