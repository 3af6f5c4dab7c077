import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { afterEach, describe, expect, test } from 'vitest';
import { signal, signalContainer, signalDescendant, signalSelf } from './support/signal.ts';

const RUN_FOREVER = 'setInterval(() => undefined, 1000);';
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function start(script: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(process.execPath, ['-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  children.push(child);
  return child;
}

/** A process whose parent has ended. */
async function orphan(env: NodeJS.ProcessEnv = {}): Promise<number> {
  const parent = start(
    `const { pid } = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(RUN_FOREVER)}], { detached: true, stdio: 'ignore' });
    process.stdout.write(String(pid), () => process.exit());`,
    env,
  );
  const [pid] = await Promise.all([once(parent.stdout ?? parent, 'data'), once(parent, 'exit')]);
  return Number(pid);
}

describe('a test’s signal', () => {
  test.each([0, -1, 1, Number.NaN, 2.5, -4242])('is refused for the pid %s', (pid) => {
    expect(() => signal(pid, 'SIGCONT')).toThrow('not the id of one process');
    expect(() => signalDescendant(process.pid, pid, 'SIGCONT')).toThrow('not the id of one process');
    expect(() => signalDescendant(pid, process.pid, 'SIGCONT')).toThrow('not the id of one process');
  });

  test('is refused for the test itself, its parent and a pid without a process', () => {
    const gone = Number(execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }));
    expect(() => signal(process.pid, 'SIGCONT')).toThrow('its own process');
    expect(() => signal(process.ppid, 'SIGCONT')).toThrow('not started by this test');
    expect(() => signal(gone, 'SIGCONT')).toThrow('not started by this test');
    expect(() => signalSelf('SIGCONT', import.meta.filename)).toThrow('not the main file');
  });

  test('ends a child', async () => {
    const child = start(RUN_FOREVER);
    signal(child.pid ?? Number.NaN, 'SIGKILL');
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
  });

  test('ends a child of a child', async () => {
    const parent = start(
      `const child = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(RUN_FOREVER)}]);
      process.stdout.write(String(child.pid));
      child.once('exit', (_code, signal) => process.exit(signal === 'SIGKILL' ? 7 : 1));`,
    );
    const [pid] = await once(parent.stdout ?? parent, 'data');
    signal(Number(pid), 'SIGKILL');
    expect(await once(parent, 'exit')).toEqual([7, null]);
  });

  test('ends an orphan only if its arguments or environment name a path of the test’s own', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tagyard-signal-'));
    try {
      const pid = await orphan({ TEST_DIRECTORY: directory });
      expect(() => signal(pid, 'SIGKILL')).toThrow('not started by this test');
      expect(() => signal(pid, 'SIGKILL', join(directory, 'other'))).toThrow('not started by this test');
      expect(() => signal(pid, 'SIGKILL', '/tmp')).toThrow('not a path');
      expect(() => signal(pid, 'SIGKILL', '')).toThrow('not a path');
      expect(() => signal(pid, 'SIGKILL', directory)).not.toThrow();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test('ends a container’s process only if the container runs and bears the mark of the test', async () => {
    const child = start(RUN_FOREVER);
    const engine = (pid: number, mark: string) =>
      ({
        getContainer: () => ({
          inspect: async () => ({ Config: { Labels: { 'tagyard.mark': mark } }, State: { Pid: pid } }),
        }),
      }) as unknown as Docker; // the two members that are read
    const send = (pid: number, mark: string) =>
      signalContainer(engine(pid, mark), { container: 'x', instance: 'test-signal' }, 'SIGKILL');
    const pid = child.pid ?? Number.NaN;
    await expect(send(0, 'tgy1 test-signal tag-1 x 0123abcd')).rejects.toThrow('0 is not the id');
    await expect(send(pid, 'tgy1 other tag-1 x 0123abcd')).rejects.toThrow('not started by this test');
    const exit = once(child, 'exit');
    await send(pid, 'tgy1 test-signal tag-1 x 0123abcd');
    expect(await exit).toEqual([null, 'SIGKILL']);
  });
});
