import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withoutCredentials } from '../../../sites/repo/credentials.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { gitHttp } from '../../support/git-http.ts';

const TOKEN = 'glpat-s3cret@/token';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-credentials-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test.each([
  ['git@git.example:sites.git', 'git@git.example:sites.git', undefined],
  ['ssh://git@git.example/sites.git', 'ssh://git@git.example/sites.git', undefined],
  ['https://git.example/sites.git', 'https://git.example/sites.git', undefined],
  ['https://bot:a%40b@git.example/s.git', 'https://git.example/s.git', ['bot', 'a@b']],
  ['https://bot:100%@git.example/s.git', 'https://git.example/s.git', ['bot', '100%']],
  ['https://bot:%ff%40@git.example/s.git', 'https://git.example/s.git', ['bot', '%ff%40']],
  ['https://token@git.example/s.git', 'https://git.example/s.git', ['token', undefined]],
  ['https://token:@git.example/s.git', 'https://git.example/s.git', ['token', '']],
])('from %s, git gets a URL without credentials', (given, url, credentials) => {
  const clean = withoutCredentials(given);
  expect(clean.url).toBe(url);
  const { TAGYARD_GIT_USERNAME: name, TAGYARD_GIT_PASSWORD: password } = clean.env;
  expect(credentials === undefined ? clean.env : [name, password]).toEqual(credentials ?? {});
});

/** The command lines with `git` in them, which every user of the machine can see, or the environments with it. */
function visible(what: 'cmdline' | 'environ'): string {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/${what}`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((text) => text.includes('git'))
    .join('\n');
}

test('a token in the URL is in no argument, file or error of git, and opens the repository', async () => {
  const bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
  execFileSync('git', ['-C', bare, 'config', 'http.receivepack', 'true']);
  const seen: string[] = [];
  let accepted = `Basic ${Buffer.from(`bot:${TOKEN}`).toString('base64')}`;
  const server = await gitHttp(dir, (authorization) => {
    seen.push(visible('cmdline'));
    return authorization === accepted;
  });
  try {
    const url = `http://bot:${encodeURIComponent(TOKEN)}@127.0.0.1:${server.port}/sites.git`;
    const repo = await openSitesRepo({ url, cacheDir: join(dir, 'cache') });
    const { revision } = await repo.commit({
      site: 'acme',
      edit: () => 'x: 1\n',
      subject: 'Change acme',
      author: { name: 'Ada', email: 'ada@example.test' },
      trailers: {},
    });
    expect(execFileSync('git', ['-C', bare, 'rev-parse', 'main'], { encoding: 'utf8' }).trim()).toBe(
      revision,
    );
    expect(seen.some((text) => text.includes('remote-http'))).toBe(true);
    accepted = 'Basic none';
    const failure = await repo.head().catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    const secrets = [TOKEN, encodeURIComponent(TOKEN)];
    const config = readFileSync(join(dir, 'cache', 'sites.git', 'config'), 'utf8');
    const said = `${(failure as Error).message} ${String((failure as Error).cause)}`;
    for (const secret of secrets)
      for (const text of [...seen, config, said]) expect(text).not.toContain(secret);
  } finally {
    await server.close();
  }
});

test.each([
  ['the user of the URL', 'bot@', 'bot'],
  ['no user', '', 'git'],
])('a token of a file is read anew, with %s, and is nowhere else', async (_, user, name) => {
  const bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
  execFileSync('git', ['-C', bare, 'config', 'http.receivepack', 'true']);
  const tokens = ['first-token', 'second token', 'third-token'];
  const seen: string[] = [];
  let accepted = '';
  const server = await gitHttp(dir, (authorization) => {
    seen.push(visible('cmdline'), visible('environ'));
    return authorization === `Basic ${Buffer.from(`${name}:${accepted}`).toString('base64')}`;
  });
  const passwordFile = join(dir, 'token');
  const rotate = (token: string, line = `${token}\n`) => {
    accepted = token;
    writeFileSync(`${passwordFile}.new`, line, { mode: 0o600 });
    renameSync(`${passwordFile}.new`, passwordFile);
  };
  rotate('first-token');
  const notices: string[] = [];
  const repo = await openSitesRepo({
    url: `http://${user}127.0.0.1:${server.port}/sites.git`,
    cacheDir: join(dir, 'cache'),
    passwordFile,
    onNotice: (message) => notices.push(message),
  });
  const commit = (site: string) =>
    repo.commit({
      site,
      edit: () => 'x: 1\n',
      subject: `Change ${site}`,
      author: { name: 'Ada', email: 'ada@example.test' },
      trailers: {},
    });
  try {
    await commit('acme');
    rotate('second token');
    const { revision } = await commit('bea');
    // Without a line's end, as many programs write it.
    rotate('third-token', 'third-token');
    expect(await repo.head()).toBe(revision);
    accepted = 'one that the file does not have yet';
    const failure = await repo.head().catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    rotate('first-token');
    await commit('cid');
    const said = [...notices, String(failure), String((failure as Error).cause)];
    const config = readFileSync(join(dir, 'cache', 'sites.git', 'config'), 'utf8');
    for (const token of tokens)
      for (const text of [...seen, ...said, config]) expect(text).not.toContain(token);
  } finally {
    await server.close();
  }
});
