import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { type Clock, systemClock } from '../../../base/clock.ts';

/** A pid is reused, but never with the same start time (clock ticks since boot). */
const processSchema = z.array(z.object({ pid: z.number(), started: z.string() }));
type Processes = z.infer<typeof processSchema>;

const KILL_TIMEOUT_MS = 5000;
const PROBE_INTERVAL_MS = 10_000;
/** The front answers at once, but the machine may be busy. */
const PROBE_TIMEOUT_MS = 5_000;

/**
 * Writes to `file` the runtimes of the worker that this process has started. If they outlive it, they keep a port in
 * use.
 */
export async function rememberRuntimes(file: string): Promise<void> {
  const found: Processes = [];
  for (const pid of await ownChildren()) {
    const started = await startTime(pid);
    if (started !== null && (await isRuntime(pid))) found.push({ pid, started });
  }
  await writeFile(file, JSON.stringify(found), { mode: 0o600 });
}

/**
 * Kills a runtime that hangs until the signal: Miniflare starts another one, as after every end. `url`: of the edge, which
 * answers any request.
 */
export async function endHungRuntimes(
  url: URL,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'> = systemClock,
): Promise<void> {
  const answers = async () => {
    const probe = fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    // A refused connection is one of a runtime that has ended and is started again.
    return await probe.then(
      () => true,
      (error: Error) => error.name !== 'TimeoutError',
    );
  };
  while (!signal.aborted) {
    await clock.sleep(PROBE_INTERVAL_MS, { signal, ref: false });
    if (signal.aborted || (await answers()) || (await answers()) || signal.aborted) continue;
    process.stderr.write('edge: the runtime doesn’t answer; it is started again\n');
    for (const pid of await ownChildren()) if (await isRuntime(pid)) process.kill(pid, 'SIGKILL');
  }
}

/** The children that any thread of this process has started. */
async function ownChildren(): Promise<number[]> {
  const tasks = `/proc/${process.pid}/task`;
  const threads = await readdir(tasks).catch(() => []);
  const lists = threads.map((thread) => readFile(join(tasks, thread, 'children'), 'utf8').catch(() => ''));
  return (await Promise.all(lists)).flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

async function isRuntime(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')) === 'workerd\n';
}

/** Kills the processes that an earlier run wrote to `file`, if they still run. */
export async function endOrphans(file: string): Promise<void> {
  for (const { pid, started } of await readProcesses(file)) {
    const deadline = Date.now() + KILL_TIMEOUT_MS;
    if ((await startTime(pid)) === started) process.kill(pid, 'SIGKILL');
    while ((await startTime(pid)) === started && Date.now() < deadline) await wait(20);
  }
}

/** The file may be missing, or incomplete after a crash. */
async function readProcesses(file: string): Promise<Processes> {
  const text = await readFile(file, 'utf8').catch(() => '');
  try {
    return processSchema.parse(JSON.parse(text));
  } catch {
    return [];
  }
}

/** Start time of a running process: the 22nd field of its stat (proc(5)), the 20th after the name in brackets. */
async function startTime(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  const [state, ...fields] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  return state === undefined || state === 'Z' ? null : (fields[18] ?? null);
}
