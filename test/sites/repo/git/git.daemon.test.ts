import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GitError, git } from '../../../../sites/repo/git/git.ts';
import { eventually } from '../../../support/eventually.ts';
import { signal } from '../../../support/signal.ts';

const GIT = new URL('../../../../sites/repo/git/git.ts', import.meta.url);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tagyard-git-'));
  await git(directory, ['init', '--quiet', '--bare']);
  for (const name of ['gate', 'hang']) await promisify(execFile)('mkfifo', [join(directory, name)]);
  // git runs an alias in the folder of the repository.
  await appendFile(
    join(directory, 'config'),
    '[alias]\n\techo = !cat\n\thang = "!touch hangs && cat hang"\n\tcopy = "!cat gate > out"\n',
  );
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** The ids of the processes that start git for process `parent`. */
const starters = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return (
          status.includes(`PPid:\t${parent}\n`) &&
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/git-process.ts')
        );
      } catch {
        return false; // ended meanwhile
      }
    });

/** The process that starts git for process `parent`. */
const starter = (parent: number): number => {
  const [pid] = starters(parent);
  if (pid === undefined) throw new Error(`no process starts git for ${parent}`);
  return pid;
};

describe('git', () => {
  test('gets its input and returns its output without changing a byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 256));
    const id = await git(directory, ['hash-object', '-w', '--stdin'], { input: bytes });
    expect(await git(directory, ['cat-file', 'blob', id.toString().trim()])).toEqual(bytes);
  });

  test('returns to each call its own output, however many run at once', async () => {
    const texts = Array.from({ length: 40 }, (_, index) => `text ${index}`);
    const outputs = await Promise.all(texts.map((input) => git(directory, ['echo'], { input })));
    expect(outputs.map(String)).toEqual(texts);
  });

  test('fails with its exit code and error output', async () => {
    const error = await git(directory, ['cat-file', 'blob', 'absent']).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(GitError);
    expect(error).toMatchObject({ exitCode: 128, message: expect.stringContaining('absent') });
  });

  test('fails with its exit code if it says nothing', async () => {
    const args = ['ls-remote', '--exit-code', `file://${directory}`, 'absent'];
    await expect(git(directory, args)).rejects.toMatchObject({ exitCode: 2 });
  });

  test('fails if it is killed while it pushes', async () => {
    const kills = join(directory, 'kills');
    const find =
      'p=$PPID; while [ "$(cat /proc/$p/comm)" != git ]; do p=$(cut -d" " -f4 /proc/$p/stat); done';
    await writeFile(kills, `#!/bin/sh\n${find}; kill -KILL $p\n`, { mode: 0o755 });
    const blob = String(await git(directory, ['hash-object', '-w', '--stdin'], { input: 'text' })).trim();
    const push = ['push', `--receive-pack=${kills}`, `file://${directory}`, `${blob}:refs/tags/pushed`];
    await expect(git(directory, push)).rejects.toMatchObject({ exitCode: -1 });
  });

  test('fails without an exit code if its folder is not there', async () => {
    const error = await git(join(directory, 'none'), ['version']).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(GitError);
    expect(error).toMatchObject({ exitCode: -1 });
  });

  test('fails when the process that started it is killed, and the next call gets a new process', async () => {
    const running = git(directory, ['hang']);
    await eventually(() => expect(existsSync(join(directory, 'hangs'))).toBe(true));
    const failed = expect(running).rejects.toThrow('ended before git did');
    const first = starter(process.pid);
    signal(first, 'SIGKILL');
    await failed;
    await writeFile(join(directory, 'hang'), ''); // ends the git process that lost its parent
    expect(String(await git(directory, ['version']))).toContain('git version');
    expect(starter(process.pid)).not.toBe(first);
  });

  test('runs to its end if the process that asked for it is killed, and no process remains', async () => {
    const script = join(directory, 'asks.ts');
    const out = join(directory, 'out');
    await writeFile(
      script,
      `import { git } from ${JSON.stringify(GIT.href)};\n` +
        `void git(${JSON.stringify(directory)}, ['copy']);\n` +
        `await git(${JSON.stringify(directory)}, ['version']);\nprocess.send?.('asked');\n`,
    );
    const asking = fork(script, { execArgv: [] });
    await once(asking, 'message');
    await eventually(() => expect(existsSync(out)).toBe(true));
    const pid = asking.pid ?? 0;
    const orphan = starter(pid);
    signal(pid, 'SIGKILL');
    await once(asking, 'exit');
    await writeFile(join(directory, 'gate'), 'done');
    await eventually(async () => expect(await readFile(out, 'utf8')).toBe('done'));
    await eventually(() => expect(existsSync(`/proc/${orphan}`)).toBe(false));
  });

  test('does not keep its caller alive once it has answered', async () => {
    const script = join(directory, 'answered.ts');
    await writeFile(
      script,
      `import { git } from ${JSON.stringify(GIT.href)};\n` +
        `console.log(String(await git(${JSON.stringify(directory)}, ['version'])));\n`,
    );
    const { stdout } = await promisify(execFile)(process.execPath, [script]);
    expect(stdout).toContain('git version');
  });
});
