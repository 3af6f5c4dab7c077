import { readFileSync } from 'node:fs';

/** User and system time of a process by `/proc` (Linux), whose ticks are hundredths of a second for all of user space. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
