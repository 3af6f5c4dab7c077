import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';

/** A process for certain: a number is given out again, but not with the same start (clock ticks since boot). */
const processes = z.array(z.object({ pid: z.number(), started: z.string() }));
type Processes = z.infer<typeof processes>;

const GONE_MS = 5000;

/**
 * Notes this process's children in `file`. The worker's runtime doesn't end with the process that started it, when
 * that is killed, and would go on holding its port.
 */
export async function rememberChildren(file: string): Promise<void> {
  const list = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').catch(() => '');
  const found: Processes = [];
  for (const pid of list.split(' ').filter((text) => text !== '')) {
    const started = await startOf(Number(pid));
    if (started !== null) found.push({ pid: Number(pid), started });
  }
  await writeFile(file, JSON.stringify(found), { mode: 0o600 });
}

/** Ends what an earlier run noted in `file` and left behind. */
export async function endOrphans(file: string): Promise<void> {
  for (const { pid, started } of await readNote(file)) {
    const deadline = Date.now() + GONE_MS;
    if ((await startOf(pid)) === started) process.kill(pid, 'SIGKILL');
    while ((await startOf(pid)) === started && Date.now() < deadline) await wait(20);
  }
}

/** A note that is missing or was cut off by a crash says nothing. */
async function readNote(file: string): Promise<Processes> {
  const text = await readFile(file, 'utf8').catch(() => '');
  try {
    return processes.parse(JSON.parse(text));
  } catch {
    return [];
  }
}

/** When a living process started: the 22nd field of its stat, the 20th after the name in brackets. */
async function startOf(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  const [state, ...fields] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  return state === undefined || state === 'Z' ? null : (fields[18] ?? null);
}
