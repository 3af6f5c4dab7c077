import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS = 20;
const TERM_MS = 3_000;
/** Requests in flight may end; a long poll of 20 s need not. */
const ENDINGS = [
  ['SIGQUIT', 3_000],
  ['SIGTERM', TERM_MS],
  ['SIGKILL', TERM_MS],
] as const;

/**
 * The process id of the nginx master that runs under `prefix`, or `null`. A pid file may outlive its process and the
 * number be somebody else's by now, so the process itself must say that it is one (Linux: /proc).
 */
export async function runningMaster(prefix: string): Promise<number | null> {
  const pid = await pidFile(prefix);
  if (pid === null) return null;
  const title = await titleOf(pid);
  const ours = title?.startsWith('nginx: master process') && title.includes(` -p ${prefix} `);
  return ours ? pid : null;
}

/** `pid` if it is an nginx master, wherever it keeps its files. */
export async function masterByPid(pid: number): Promise<number | null> {
  if (!Number.isInteger(pid) || pid <= 1) return null;
  return (await titleOf(pid))?.startsWith('nginx: master process') ? pid : null;
}

async function pidFile(prefix: string): Promise<number | null> {
  const text = await readFile(join(prefix, 'nginx.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return Number.isInteger(pid) && pid > 1 ? pid : null;
}

/**
 * Workers that outlived their master (it was killed) still hold its sockets, so that a new one can't listen. They are
 * known by the process group that the master led; asked to go, they close their sockets and end what is in flight.
 */
export async function retireOrphans(prefix: string): Promise<void> {
  const master = await pidFile(prefix);
  if (master === null || (await runningMaster(prefix)) !== null) return;
  const orphans = await workersOfGroup(master);
  for (const pid of orphans) process.kill(pid, 'SIGQUIT');
  const deadline = performance.now() + TERM_MS;
  while (!(await allRetired(orphans)) && performance.now() < deadline) await wait(POLL_MS);
}

async function workersOfGroup(group: number): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      // `pid (name) state ppid pgrp …`: the name may hold anything, so fields are counted from its end (proc(5)).
      const pgrp = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
      const worker = pgrp === group && (await titleOf(pid))?.startsWith('nginx: worker process');
      return worker ? [pid] : [];
    }),
  );
  return found.flat();
}

/** Children of a master, by process id. */
export async function workersOf(master: number): Promise<number[]> {
  const text = await readFile(`/proc/${master}/task/${master}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

/** True once every worker has closed its listening sockets (it says so in its title) or is gone. */
export async function allRetired(workers: readonly number[]): Promise<boolean> {
  const titles = await Promise.all(workers.map(titleOf));
  return titles.every((title) => title === null || title.includes('is shutting down'));
}

/**
 * Ends the nginx that runs under `prefix`, if any: gracefully, then less so. Also for one that was left behind by a
 * process that was killed. Resolves when it is gone.
 */
export async function stopNginx(prefix: string): Promise<void> {
  for (const [signal, timeoutMs] of ENDINGS) {
    const master = await runningMaster(prefix);
    if (master === null) break;
    process.kill(master, signal);
    const deadline = performance.now() + timeoutMs;
    while ((await runningMaster(prefix)) !== null && performance.now() < deadline) await wait(POLL_MS);
  }
  await retireOrphans(prefix);
}

/** The command line, `null` for a process that is gone (a zombie has an empty one). */
async function titleOf(pid: number): Promise<string | null> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return line === '' ? null : line.replaceAll('\0', ' ');
}
