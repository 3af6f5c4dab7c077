import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type Docker from 'dockerode';
import { MARK_LABEL } from '../../gitops/clients/docker.ts';

/**
 * Sends a signal to a process that the tests started. That is a descendant of this process, or a process whose
 * arguments or environment name `ownPath`, a folder or file of the test: a daemon or an orphan, which has another
 * parent. Throws for any other process. `kill(2)` with 0 or -1 reaches a whole group or everything, the test run
 * included.
 */
export function signal(pid: number, name: NodeJS.Signals, ownPath?: string): void {
  refuseUnspecific(pid);
  if (pid === process.pid) throw new Error('a test must not signal its own process');
  if (!isDescendant(pid, process.pid) && !(ownPath !== undefined && mentions(pid, ownPath))) {
    throw new Error(`process ${pid} was not started by this test`);
  }
  process.kill(pid, name);
}

/** Signals the main process of a running container that bears the mark of a test's own `instance`. */
export async function signalContainer(
  docker: Docker,
  { container, instance }: { container: string; instance: string },
  name: NodeJS.Signals,
): Promise<void> {
  const { Config, State } = await docker.getContainer(container).inspect();
  if (!Config.Labels[MARK_LABEL]?.startsWith(`tgy1 ${instance} `)) {
    throw new Error(`container ${container} was not started by this test`);
  }
  // 0 while the container is down.
  refuseUnspecific(State.Pid);
  process.kill(State.Pid, name);
}

/** For scripts that a test doesn't run itself: signals `pid` if it descends from the test's own process `root`. */
export function signalDescendant(root: number, pid: number, name: NodeJS.Signals): void {
  refuseUnspecific(root);
  refuseUnspecific(pid);
  if (!isDescendant(pid, root)) throw new Error(`process ${pid} was not started by process ${root}`);
  process.kill(pid, name);
}

/**
 * Signals this very process, which must be a helper program whose main file is `main`. SIGKILL takes effect
 * before the call returns.
 */
export function signalSelf(name: NodeJS.Signals, main: string): void {
  if (process.argv[1] !== main) throw new Error(`${main} is not the main file of this process`);
  process.kill(process.pid, name);
}

/**
 * When this process next sends a signal, the receiver ends just before, so the signal finds no process. `ownPath`: see
 * `signal`. Returns a function that undoes this, for the case that no process is signalled.
 */
export function endBeforeSignal(ownPath: string): () => void {
  const original = process.kill;
  const restore = () => {
    process.kill = original;
  };
  process.kill = (pid) => {
    restore();
    signal(pid, 'SIGKILL', ownPath);
    throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' });
  };
  return restore;
}

function refuseUnspecific(pid: number): void {
  if (!Number.isInteger(pid) || pid <= 1) throw new Error(`${pid} is not the id of one process`);
}

function isDescendant(pid: number, root: number): boolean {
  for (let parent = parentOf(pid); parent !== null && parent > 1; parent = parentOf(parent)) {
    if (parent === root) return true;
  }
  return false;
}

/** The parent of a process, see proc(5); `null` if there is no such process. */
function parentOf(pid: number): number | null {
  const parent = /^PPid:\t(\d+)$/m.exec(readProc(pid, 'status'))?.[1];
  return parent === undefined ? null : Number(parent);
}

function mentions(pid: number, path: string): boolean {
  // `/tmp` alone is in the environment of many processes.
  if (!isAbsolute(path) || path.split('/').length < 3)
    throw new Error(`${path} is not a path of a test’s own`);
  return ['cmdline', 'environ'].some((file) => readProc(pid, file).includes(path));
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
