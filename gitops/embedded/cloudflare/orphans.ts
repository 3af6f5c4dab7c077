import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';

/** A pid is reused, but never with the same start time (clock ticks since boot). */
const processSchema = z.array(z.object({ pid: z.number(), started: z.string() }));
type Processes = z.infer<typeof processSchema>;

const KILL_TIMEOUT_MS = 5000;

/**
 * Writes this process's children to `file`. The worker's runtime survives a SIGKILL of the process that started it and
 * keeps its port.
 */
export async function rememberChildren(file: string): Promise<void> {
  const list = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').catch(() => '');
  const found: Processes = [];
  for (const pid of list.split(' ').filter((text) => text !== '')) {
    const started = await startTime(Number(pid));
    if (started !== null) found.push({ pid: Number(pid), started });
  }
  await writeFile(file, JSON.stringify(found), { mode: 0o600 });
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
