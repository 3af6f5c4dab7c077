import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Home } from '../../../../gitops/cli/instance/home.ts';
import { clearLeftovers, rememberPids } from '../../../../gitops/cli/up/leftovers.ts';

let folder: string;
let home: Home;
let script: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tagyard-leftovers-'));
  home = new Home(folder);
  script = join(folder, 'part.mjs');
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

/** A process that runs `script` and has written its first line. */
async function startPart(source: string): Promise<{ child: ChildProcess; pid: number }> {
  await writeFile(script, source);
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  if (child.stdout === null || child.pid === undefined) throw new Error('the part did not start');
  await once(child.stdout, 'data');
  return { child, pid: child.pid };
}
const HANGS = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('up');`;
const EXITS_WITH_ITS_PIPE = `process.stdin.resume().on('end', () => process.exit(7)); console.log('up');`;

test('kills a child that does not exit in time', async () => {
  const { child, pid } = await startPart(HANGS);
  const exit = once(child, 'exit');
  rememberPids(home, [{ pid, script }]);
  await clearLeftovers(home, 0);
  expect(await exit).toEqual([null, 'SIGKILL']);
});

test('waits for a child that exits on its own', async () => {
  const { child, pid } = await startPart(EXITS_WITH_ITS_PIPE);
  const exit = once(child, 'exit');
  rememberPids(home, [{ pid, script }]);
  const cleared = clearLeftovers(home, 60_000);
  child.stdin?.end();
  await cleared;
  expect(await exit).toEqual([7, null]);
});

test('does not touch another process that got the pid', async () => {
  const { child, pid } = await startPart(HANGS);
  rememberPids(home, [{ pid, script: join(folder, 'another.mjs') }]);
  await clearLeftovers(home, 0);
  expect([child.exitCode, child.signalCode]).toEqual([null, null]);
});

test.each([
  ['missing', null],
  ['no JSON', '['],
  ['no list', '{}'],
  ['a list of something else', '[null, 1, {"pid":"1","script":"x"}]'],
])('a file of pids that is %s is taken as empty', async (_what, text) => {
  if (text !== null) await writeFile(home.at('children.json'), text);
  await expect(clearLeftovers(home, 0)).resolves.toBeUndefined();
});
