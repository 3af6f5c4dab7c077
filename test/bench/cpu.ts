import { readdirSync, readFileSync } from 'node:fs';

/** User and system time of a process by `/proc` (Linux), which gives hundredths of a second on every machine. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * The same time by the scheduler's count of nanoseconds, for spans that are short compared with a tick. Threads that
 * have ended don't count.
 */
export function threadsMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const spent = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'));
  return spent.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0) / 1e6;
}
