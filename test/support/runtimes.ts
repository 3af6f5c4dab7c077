import { readFileSync } from 'node:fs';

/** The runtimes of the edge worker (workerd) that a process has started. Source: proc(5). */
export function runtimesOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return children
    .map(Number)
    .filter((child) => /workerd\0/.test(readFileSync(`/proc/${child}/cmdline`, 'utf8')));
}
