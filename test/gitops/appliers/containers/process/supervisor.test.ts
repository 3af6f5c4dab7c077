import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import {
  describeEnd,
  type ProcessEnd,
  type Supervised,
  type SupervisorOptions,
  supervise,
} from '../../../../../gitops/appliers/containers/process/supervisor.ts';

const RUN_FOREVER = 'setInterval(() => undefined, 1000);';
const READY = "process.send({ type: 'ready', port: 7 });";
const running: Supervised[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop(0)));
});

/** Supervises `node -e <script>` and records every process, every end and each count of failures. */
function superviseScript(script: string, options: Partial<SupervisorOptions> = {}) {
  const processes: ChildProcess[] = [];
  const ends: ProcessEnd[] = [];
  const failures: number[] = [];
  const changes = new EventTarget();
  const supervised = supervise({
    spawn() {
      const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
      processes.push(child);
      changes.dispatchEvent(new Event('change'));
      return child;
    },
    onEnd(end) {
      ends.push(end);
      changes.dispatchEvent(new Event('change'));
    },
    restartDelayMs(count) {
      failures.push(count);
      return 1;
    },
    ...options,
  });
  running.push(supervised);
  const until = async (isMet: () => boolean) => {
    while (!isMet()) await once(changes, 'change');
  };
  return { supervised, processes, ends, failures, until };
}

test('restarts a process that ends, and counts its consecutive failures', async () => {
  const { supervised, processes, ends, failures, until } = superviseScript(
    "console.log('one'); console.error('two'); process.exitCode = 3",
  );
  await until(() => processes.length === 3);
  await supervised.stop(1000);
  expect(ends.slice(0, 2).map(describeEnd)).toEqual(['exit code 3', 'exit code 3']);
  expect(failures.slice(0, 2)).toEqual([1, 2]);
  expect(supervised.lastLines().slice(0, 2).toSorted()).toEqual(['one', 'two']);
});

test('counts failures from zero again after a minute of service', async () => {
  let time = 0;
  const { failures, until } = superviseScript('', {
    now() {
      time += 60_000;
      return time;
    },
  });
  await until(() => failures.length === 3);
  expect(failures.slice(0, 3)).toEqual([1, 1, 1]);
});

test('doesn’t count the time until a process is ready as service', async () => {
  let time = 0;
  const { failures, until } = superviseScript('', {
    readiness: { timeoutMs: 60_000, onReady: () => undefined },
    now() {
      time += 60_000;
      return time;
    },
  });
  await until(() => failures.length === 2);
  expect(failures.slice(0, 2)).toEqual([1, 2]);
});

test('reports how a process ended, whether it was ready and whether it was stopped', async () => {
  const ready = Promise.withResolvers<object>();
  const { supervised, processes, ends, until } = superviseScript(READY + RUN_FOREVER, {
    readiness: { timeoutMs: 60_000, onReady: ready.resolve },
  });
  expect(await ready.promise).toEqual({ type: 'ready', port: 7 });
  expect(supervised.lastEnd()).toBeNull();
  processes[0]?.kill('SIGKILL');
  await until(() => processes.length === 2);
  expect(ends).toEqual([{ code: null, signal: 'SIGKILL', error: null, wasReady: true, isStopped: false }]);
  await supervised.stop(1000);
  expect(ends[1]).toMatchObject({ signal: 'SIGTERM', isStopped: true });
  expect(processes).toHaveLength(2);
});

test('kills a process that does not get ready in time, and starts the next one', async () => {
  const { processes, ends, until } = superviseScript(RUN_FOREVER, {
    readiness: { timeoutMs: 1, onReady: () => undefined },
  });
  await until(() => processes.length === 2);
  expect(ends[0]).toMatchObject({ signal: 'SIGKILL', wasReady: false });
  expect(ends.slice(0, 1).map(describeEnd)).toEqual(['it did not get ready in time']);
});

test('sends SIGKILL to a process that ignores SIGTERM, after the grace period', async () => {
  const ready = Promise.withResolvers<object>();
  const { supervised, ends } = superviseScript(
    `process.on('SIGTERM', () => undefined);${READY}${RUN_FOREVER}`,
    { readiness: { timeoutMs: 60_000, onReady: ready.resolve } },
  );
  await ready.promise;
  await supervised.stop(1);
  expect(ends.map(({ signal }) => signal)).toEqual(['SIGKILL']);
});

test('reports a process that could not be spawned', async () => {
  const failed = Promise.withResolvers<ProcessEnd>();
  const supervised = supervise({
    spawn: () => spawn('/nonexistent/program'),
    onEnd: failed.resolve,
  });
  running.push(supervised);
  const end = await failed.promise;
  expect(describeEnd(end)).toContain('ENOENT');
  await supervised.stop(0);
});
