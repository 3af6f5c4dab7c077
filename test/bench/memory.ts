import { readdirSync, readFileSync } from 'node:fs';

/** A process and all its descendants, by `/proc` (Linux). */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    const parent = Number.isInteger(pid) ? parentOf(pid) : null;
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const collect = (pid: number): number[] => [pid, ...(children.get(pid) ?? []).flatMap(collect)];
  return collect(root);
}

/**
 * Memory of a process tree in MiB. Proportional (PSS), so that a page of several processes counts once: a sum of RSS
 * would count the Node binary for each process.
 */
export function residentMiB(root: number): number {
  return processTree(root).reduce((total, pid) => total + processMiB(pid), 0);
}

/** The resident memory of each process of a tree (RSS, MiB): a page that several use counts for each of them. */
export function residentByProcess(root: number): { readonly command: string; readonly mib: number }[] {
  return processTree(root).map((pid) => {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '') ?? [];
    const command = (read(`/proc/${pid}/cmdline`) ?? '').replaceAll('\0', ' ').trim();
    return { command, mib: Number(kib ?? 0) / 1024 };
  });
}

/** The proportional memory of one process alone. */
export function processMiB(pid: number): number {
  const line = /^Pss:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`) ?? '');
  return Number(line?.[1] ?? 0) / 1024;
}

/**
 * The fourth field of `stat`; the second field, the command in parentheses, may itself contain spaces and parentheses.
 */
function parentOf(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`);
  const parent = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
  return parent === undefined ? null : Number(parent);
}

/** `null` for a process that ended in the meantime. */
function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) {
      return null;
    }
    throw error;
  }
}
