import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GitError, git } from '../../../sites/repo/git/git.ts';
import { FETCH } from '../../../sites/repo/mirror.ts';
import { eventually } from '../../support/eventually.ts';
import { signal } from '../../support/signal.ts';

let dir: string;
const at = (...parts: string[]) => join(dir, ...parts);
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-git-client-'));
  execFileSync('git', ['init', '--quiet', '--bare', at('remote.git')]);
  execFileSync('git', ['init', '--quiet', '--bare', at('mirror.git')]);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** An alias of git that runs this shell command. */
const alias = (command: string) => ['-c', `alias.probe=!${command}`, 'probe'];

test('a call of git returns the bytes of its output, or fails with its error output and exit code', async () => {
  const bytes = Buffer.from([0xff, 0x00, 0x0a]);
  const id = (await git(at('remote.git'), ['hash-object', '-w', '--stdin'], { input: bytes })).toString();
  expect(await git(at('remote.git'), ['cat-file', 'blob', id.trim()])).toEqual(bytes);
  const failing = git(at('remote.git'), ['rev-parse', '--verify', 'nothing']);
  await expect(failing).rejects.toMatchObject({ exitCode: 128, message: 'fatal: Needed a single revision' });
  await expect(git(at('nowhere'), ['status'])).rejects.toBeInstanceOf(GitError);
});

test('of a hundred concurrent calls, at most sixteen have a process', async () => {
  const [log, open] = [at('log'), at('open')];
  writeFileSync(log, '');
  const probe = `echo start >> ${log}; until [ -e ${open} ]; do sleep 0.02; done; echo end >> ${log}`;
  const calls = Promise.all(Array.from({ length: 100 }, () => git(at('remote.git'), alias(probe))));
  const lines = () => readFileSync(log, 'utf8').split('\n').filter(Boolean);
  await eventually(() => expect(lines().length).toBeGreaterThanOrEqual(16));
  writeFileSync(open, '');
  await calls;
  let running = 0;
  const most = Math.max(...lines().map((line) => (running += line === 'start' ? 1 : -1)));
  expect(lines()).toHaveLength(200);
  expect(most).toBe(16);
});

test('a call fails if the process that starts git is stopped, and the next one gets another process', async () => {
  await git(at('remote.git'), ['version']);
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .map(Number);
  const helper = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('git-process'));
  signal(helper ?? 0, 'SIGSTOP');
  const failing = git(at('remote.git'), ['version']);
  await expect(failing).rejects.toMatchObject({
    exitCode: -1,
    message: expect.stringContaining('did not respond'),
  });
  expect(String(await git(at('remote.git'), ['version']))).toMatch(/^git version/);
});

describe('a slow remote', () => {
  /** A remote that sends this many bytes every 75 ms. */
  function slowRemote(bytesAtOnce: number): void {
    const inRemote = (args: readonly string[], input: string | Buffer) =>
      execFileSync('git', ['-C', at('remote.git'), ...args], { input, encoding: 'utf8' }).trim();
    // git shows its progress after each object.
    const files = Array.from({ length: 20 }, (_, number) => {
      const blob = inRemote(['hash-object', '-w', '--stdin'], randomBytes(6_000));
      return `100644 blob ${blob}\t${number}.yaml\n`;
    });
    const tree = inRemote(['mktree'], files.join(''));
    const person = ['-c', 'user.name=Op', '-c', 'user.email=op@example.test'];
    inRemote(['update-ref', 'refs/heads/main', inRemote([...person, 'commit-tree', tree], 'Large')], '');
    // Perl starts at once also on a busy machine: until the first byte the remote is silent.
    const slow = `$| = 1; while (sysread(STDIN, $b, ${bytesAtOnce})) { print $b; select(undef, undef, undef, 0.075) }`;
    const script = `#!/bin/sh\ngit-upload-pack "$@" | perl -e '${slow}'\n`;
    writeFileSync(at('upload-pack'), script, { mode: 0o755 });
    execFileSync('git', ['-C', at('mirror.git'), 'config', 'remote.origin.url', at('remote.git')]);
    execFileSync('git', ['-C', at('mirror.git'), 'config', 'remote.origin.uploadpack', at('upload-pack')]);
  }
  const fetch = (silenceMs: number) => git(at('mirror.git'), FETCH, { silenceMs });
  const large = () => execFileSync('git', ['-C', at('mirror.git'), 'for-each-ref'], { encoding: 'utf8' });

  test('may take longer than the silence that is allowed, as long as it makes progress', async () => {
    // About 60 pauses of 75 ms: 4.5 s in all.
    slowRemote(2_000);
    await fetch(3_000);
    expect(large()).toContain('refs/heads/main');
  });

  test('that sends nothing is ended, and the error says so', async () => {
    writeFileSync(at('silent'), '#!/bin/sh\nexec cat > /dev/null\n', { mode: 0o755 });
    slowRemote(2_000);
    execFileSync('git', ['-C', at('mirror.git'), 'config', 'remote.origin.uploadpack', at('silent')]);
    await expect(fetch(200)).rejects.toThrow(/no progress for 0.2 s/);
  });
});
