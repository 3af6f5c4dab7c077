import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliError } from '../../../gitops/cli/output/cli-error.ts';
import { program } from '../../../gitops/cli/program.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { tagyardOf, tagyardOnTerminal } from '../../support/cli/command.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
let url: string;
beforeEach(async () => {
  daemon = await memoryDaemon();
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => daemon.close());

const tagyard = (args: readonly string[]) => tagyardOf(url)(args);
/** The exit code and the parsed output of `--json`. */
async function json(...args: string[]) {
  const { exitCode, stdout } = await tagyard([...args, '--json']);
  return { exitCode, answer: JSON.parse(stdout) as unknown };
}
async function applied(...names: string[]) {
  for (const [number, name] of names.entries()) await daemon.push(name, daemon.manifest(name, number));
  for (const name of names) await daemon.reaches(name, 'Ready');
}

describe('tagyard --json', () => {
  test('status prints every site, or one with its resources', async () => {
    expect(await json('status')).toEqual({
      exitCode: 0,
      answer: { revision: null, problem: null, sites: [], quotas: [], drift: [], checks: expect.any(Array) },
    });
    await applied('one', 'two');
    const revision = await daemon.repo.head();
    expect(await json('status')).toMatchObject({
      exitCode: 0,
      answer: { revision, sites: [{ site: 'one', applied: revision, reason: 'Ready' }, { site: 'two' }] },
    });
    expect(await json('status', 'one')).toMatchObject({
      exitCode: 0,
      answer: { site: 'one', resources: expect.arrayContaining([expect.objectContaining({ target: 'kv' })]) },
    });
  });

  test('history prints the commits of a site, newest first', async () => {
    await applied('one');
    const { revision } = await daemon.push('one', daemon.manifest('one', 0, { name: 'Renamed' }));
    const { exitCode, answer } = await json('history', 'one');
    expect(exitCode).toBe(0);
    expect(answer).toMatchObject([{ revision, subject: 'By hand' }, { subject: 'By hand' }]);
  });

  test('diff prints both texts', async () => {
    await applied('one');
    expect(await json('diff')).toEqual({ exitCode: 0, answer: [] });
    await writeFile(join(daemon.dir, 'freeze'), '');
    const [before, after] = [daemon.manifest('one', 0), daemon.manifest('one', 0, { name: 'Renamed' })];
    await daemon.push('one', after);
    await daemon.reaches('one', 'Frozen');
    expect(await json('diff', 'one')).toEqual({
      exitCode: 2,
      answer: [{ site: 'one', before: formatManifest(before), after: formatManifest(after) }],
    });
  });

  test('suspend, resume and revert print the commit', async () => {
    await applied('one');
    for (const verb of ['suspend', 'resume', 'revert']) {
      const { exitCode, answer } = await json(verb, 'one', '--reason', 'a test');
      expect(exitCode).toBe(0);
      expect(answer).toMatchObject({ site: 'one', revision: await daemon.repo.head() });
      expect((await daemon.repo.history('one', 1))[0]?.trailers).toMatchObject({ Reason: 'a test' });
    }
  });

  test('doctor prints problems and remedies', async () => {
    await applied('one');
    expect(await json('doctor')).toMatchObject({
      exitCode: 0,
      answer: { sites: 1, findings: [], blocked: [] },
    });
    await daemon.push('one', null);
    await daemon.reaches('one', 'Blocked');
    expect(await json('doctor')).toMatchObject({
      exitCode: 1,
      answer: {
        findings: [{ site: 'one', reason: 'Blocked', remedy: expect.stringContaining('tagyard approve') }],
        blocked: [expect.objectContaining({ reason: expect.any(String) })],
      },
    });
  });
});

describe('tagyard exits with a code and prints the error', () => {
  test.each([
    'status nosuch',
    'history nosuch',
    'revert nosuch',
    'suspend nosuch',
    'resume nosuch',
    'diff --ref nowhere',
    'approve ffff',
    'apply --checksum ffff',
  ])('of 1 for the command %s', async (words) => {
    await applied('one');
    expect(await tagyard(words.split(' '))).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^tagyard: ./),
    });
  });

  test.each([
    ['statsu', /^error: unknown command 'statsu'\n\(Did you mean status\?\)$/],
    ['status --stat x', /^error: unknown option '--stat'\n\(Did you mean --state\?\)$/],
    ['suspend', /^error: missing required argument 'site'$/],
    ['prune --days many', /^tagyard: --days many: give a number/],
    ['logs one --since yesterday', /^tagyard: --since yesterday: give a time/],
  ])('of 64 and nothing else for %s', async (words, said) => {
    const { exitCode, stdout, stderr } = await tagyard(words.split(' '));
    expect({ exitCode, stdout }).toEqual({ exitCode: 64, stdout: '' });
    expect(stderr).toMatch(said);
  });

  test('if no provisioner answers', async () => {
    expect(await tagyardOf('http://127.0.0.1:1')(['plan'])).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: "tagyard: the provisioner at http://127.0.0.1:1 can't be reached",
    });
  });

  test.each([
    'plan',
    'apply',
    'status',
    'history one',
    'diff',
    'revert one',
    'approve ffff',
    'suspend one',
    'resume one',
    'prune',
    'doctor',
  ])('if no provisioner answers: the command %s throws a CliError', async (words) => {
    const command = program({ INFRA_PROVISIONER_URL: 'http://127.0.0.1:1' });
    await expect(command.parseAsync(words.split(' '), { from: 'user' })).rejects.toThrow(CliError);
  });
});

const ERASED = '\r\u001b[K';
function splitAtLast(text: string, mark: string): [before: string, after: string] {
  const at = text.lastIndexOf(mark);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

// `script` of util-linux provides the terminal. Other systems have a different command of that name.
describe.skipIf(process.platform !== 'linux')('tagyard', () => {
  test('apply shows progress on a terminal, erases it at the end, and keeps its exit code', async () => {
    await applied('one', 'two');
    daemon.world('kv').clear();
    const { exitCode, stdout } = await tagyardOnTerminal(url)(['apply']);
    expect(exitCode).toBe(0);
    const [before, end] = splitAtLast(stdout, ERASED);
    const lines = before.split(ERASED).filter((line) => line !== '');
    expect(lines[0]).toMatch(/^applying [0-9a-f]{8}: 0 of 2 sites, one$/);
    expect(lines.at(-1)).toMatch(/^applying [0-9a-f]{8}: 1 of 2 sites, two$/);
    expect(end).not.toContain('applying');
    expect(end).toContain('\u001b[32msucceeded');
  });

  test('apply writes no progress line without a terminal', async () => {
    await applied('one');
    daemon.world('kv').clear();
    expect(await tagyard(['apply'])).toMatchObject({ exitCode: 0, stderr: '' });
  });
});
