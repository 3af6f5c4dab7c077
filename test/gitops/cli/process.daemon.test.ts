import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CLI, tagyardOf, tagyardOnTerminal } from '../../support/cli/command.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
let url: string;
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-cli-'));
  daemon = await memoryDaemon();
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  await daemon.close();
  await rm(dir, { recursive: true });
});

const tagyard = (args: readonly string[], env: Record<string, string> = {}) => tagyardHere(url, args, env);
async function applied(...names: string[]) {
  for (const [number, name] of names.entries()) await daemon.push(name, daemon.manifest(name, number));
  for (const name of names) await daemon.reaches(name, 'Ready');
}
const stateOf = async (site: string) => {
  const file = await daemon.repo.readSite((await daemon.repo.head()) ?? '', site);
  return /^state: (.*)$/m.exec(file?.text ?? '')?.[1] ?? 'present';
};

describe('a revert that removes the site', () => {
  test('is refused without a terminal, and commits nothing', async () => {
    await applied('one', 'two');
    const head = await daemon.repo.head();
    const refused = await tagyardOf(url)(['revert', 'one']);
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^tagyard: before [0-9a-f]{8} \(By hand\) there was no site one.*--yes$/);
    expect(await daemon.repo.head()).toBe(head);
    expect(await tagyard(['revert', 'one', '--yes'])).toMatchObject({ exitCode: 0 });
    await daemon.reaches('one', 'Removed');
  });

  test.each([
    ['removed if its own name is typed', 'one', 0, 'absent'],
    ['kept if another name is typed', 'two', 1, 'present'],
    ['kept if the answer is empty', '', 1, 'present'],
  ])('asks on a terminal for the site’s name; the site is %s', async (_what, typed, exitCode, state) => {
    await applied('one', 'two');
    const asked = await tagyardOnTerminal(url)(['revert', 'one'], `${typed}\n`);
    expect(asked.stdout).toContain('Type the site');
    expect(asked.exitCode).toBe(exitCode);
    expect(await stateOf('one')).toBe(state);
  });

  test('needs --yes also if it brings back a tombstone', async () => {
    await applied('one', 'two');
    await daemon.call('POST', '/deprovision?wait=20', { site: 'one' });
    const { revision } = await daemon.push('one', daemon.manifest('one', 0));
    await daemon.reaches('one', 'Ready');
    expect(await tagyard(['revert', 'one', revision])).toMatchObject({ exitCode: 1 });
    expect(await stateOf('one')).toBe('present');
    expect((await tagyard(['revert', 'one', revision, '--yes'])).exitCode).toBe(0);
    expect(await stateOf('one')).toBe('absent');
  });

  test('is the only kind that needs a confirmation', async () => {
    await applied('one', 'two');
    await daemon.push('one', daemon.manifest('one', 0, { name: 'A mistake' }));
    expect((await tagyard(['revert', 'one'])).exitCode).toBe(0);
    await daemon.call('POST', '/deprovision?wait=20', { site: 'two' });
    expect((await tagyard(['revert', 'two'])).exitCode).toBe(0);
    expect(await stateOf('two')).toBe('present');
  });
});

describe('an error of the API', () => {
  test('is printed with every field at fault', async () => {
    await applied('one');
    await daemon.push('one', 'version: 1\nsite: one\nwhat: ever\n');
    await daemon.reaches('one', 'InvalidManifest');
    const { exitCode, stderr } = await tagyard(['suspend', 'one']);
    expect(exitCode).toBe(1);
    expect(stderr.split('\n')[0]).toBe('fix one.yaml in the sites repository first');
    expect(stderr).toContain('\n  what: unknown key');
  });

  test('is also reported if the answer isn’t JSON, isn’t a problem document, or comes from another release', async () => {
    let [status, body] = [200, 'hello'];
    const server = createServer((_request, response) => response.writeHead(status).end(body));
    await new Promise<void>((done) => server.listen({ port: 0, host: '127.0.0.1' }, done));
    const strange = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
    try {
      expect((await tagyardHere(strange, ['plan'])).stderr).toContain('did not answer like a provisioner');
      [status, body] = [502, '<html>'];
      expect((await tagyardHere(strange, ['plan'])).stderr).toContain('answered with status 502');
      [status, body] = [200, '{"changes":7}'];
      const { exitCode, stderr } = await tagyardOf(strange)(['plan']);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/^tagyard: a daemon's answer doesn't match this release .*$/);
    } finally {
      await new Promise((done) => server.close(done));
    }
  });
});

describe('a command that can’t work ends with a message', () => {
  test.each([
    [['status'], { INFRA_PROVISIONER_URL: 'nonsense' }, 1, 'INFRA_PROVISIONER_URL=nonsense is not a URL'],
    [['status'], { TAGYARD_TIMEOUT: 'soon' }, 64, 'TAGYARD_TIMEOUT=soon'],
    [['status'], { INFRA_SECRET: 'a\nb' }, 1, 'INFRA_SECRET has a character'],
    [['status'], { INFRA_SECRET: 'wrong' }, 1, 'x-secret header is missing or wrong'],
    [
      ['client', 'add', 'x'],
      { MANAGEMENT_URL: 'nonsense', TAGYARD_TOKEN: 't' },
      1,
      'MANAGEMENT_URL=nonsense',
    ],
    [['prune', '--days', ''], {}, 64, '--days'],
  ])('%j with %j', async (args, env, code, words) => {
    const { exitCode, stderr } = await tagyard(args, env);
    expect({ exitCode, stderr }).toEqual({ exitCode: code, stderr: expect.stringContaining(words) });
  });

  test('in a home without an instance', async () => {
    for (const words of ['status', 'doctor', 'logs one', 'token --client x', 'client add x']) {
      const args = words.split(' ');
      const { exitCode, stderr } = await tagyardHere('', args, {
        TAGYARD_HOME: join(dir, 'none'),
        INFRA_SECRET: '',
      });
      expect({ words, exitCode, stderr }).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('no instance runs here'),
      });
    }
  });
});

test.each(['INFRA_SECRET', 'INFRA_READ_TOKEN'])('a host is found by its settings, with %s', async (name) => {
  await applied('one');
  const file = join(dir, 'provisioner.env');
  const { port } = new URL(url);
  await writeFile(file, `PROVISIONER_PORT=${port}\n${name}=${SECRET}\n`);
  // An instance of this folder doesn't count beside a host that is named.
  const home = { TAGYARD_HOME: join(dir, 'instance') };
  await mkdir(home.TAGYARD_HOME);
  await writeFile(join(home.TAGYARD_HOME, 'run.json'), '{}');
  const { exitCode, stdout } = await tagyardHere('', ['--env-file', file, 'status', '--json'], home);
  expect([exitCode, JSON.parse(stdout).sites]).toMatchObject([0, [{ site: 'one' }]]);
  const missing = await tagyardHere('', ['--env-file', `${file}.old`, 'status'], home);
  expect(missing).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("can't be read") });
});

test('a reason in any alphabet is recorded as it was typed, on one line', async () => {
  await applied('one');
  const reason = 'Störung – 調査中 €';
  expect((await tagyard(['suspend', 'one', '--reason', `${reason}\nSite: two`])).exitCode).toBe(0);
  const [commit] = await daemon.repo.history('one', 1);
  expect(commit?.trailers).toMatchObject({ Site: 'one', Reason: `${reason} Site: two` });
});

describe('.env', () => {
  const run = async (env: Record<string, string> = {}) =>
    await execa(process.execPath, [CLI, 'status', '--json'], {
      cwd: dir,
      reject: false,
      env: { INFRA_PROVISIONER_URL: undefined, INFRA_SECRET: undefined, ...env },
    });

  test('of the working directory is read; variables that are set win', async () => {
    await applied('one');
    await writeFile(join(dir, '.env'), `INFRA_PROVISIONER_URL=${url}\nINFRA_SECRET="${SECRET}"\n`);
    expect(await run()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('"one"') });
    expect(await run({ INFRA_SECRET: 'other' })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('x-secret'),
    });
  });

  test('that can’t be read is an error', async () => {
    await chmod(dir, 0o700);
    await execa('mkdir', [join(dir, '.env')]);
    const { exitCode, stderr } = await run();
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^tagyard: \.env /),
    });
    expect(stderr).not.toContain('    at ');
  });
});

test('apply ends even if an operation doesn’t', async () => {
  await applied('one');
  const gate = Promise.withResolvers<void>();
  daemon.control.before = () => gate.promise;
  daemon.world('kv').clear();
  const { exitCode, stderr } = await tagyard(['apply', '--wait', '0']);
  gate.resolve();
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.stringContaining('one is not finished after 0 s'),
  });
  expect((await tagyard(['apply', '--wait', 'long'])).stderr).toContain('--wait long');
});

test.skipIf(process.platform !== 'linux')(
  'a full disk under the output is an error without a stack',
  async () => {
    const { stderr, exitCode } = await execa(
      'sh',
      ['-c', '"$0" "$1" status > /dev/full', process.execPath, CLI],
      {
        reject: false,
        env: { INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET },
      },
    );
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tagyard: the output can't be written: ENOSPC.*$/);
  },
);

test('a reader that closes the pipe ends the command without a stack', async () => {
  await applied('one');
  const command = `"$0" "$1" status --json 2>&1 >&3 3>&- | cat >&2`;
  const { stderr, exitCode } = await execa(
    'bash',
    ['-c', `set -o pipefail; { ${command}; } 3> >(exec true)`, process.execPath, CLI],
    { reject: false, env: { INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET } },
  );
  expect(stderr).toBe('');
  expect([0, 141]).toContain(exitCode);
});
