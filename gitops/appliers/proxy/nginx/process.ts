import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const MASTER = 'nginx: master process';
const POLL_MS = 20;
const TERM_MS = 3_000;
/** Long enough for most requests in flight, but not for a long poll of 20 s. */
const GRACE_MS = 3_000;

/**
 * The process id of the nginx master that runs under `prefix`, or `null`. A pid file may be stale and its number in use
 * by another process, or the file may be gone; so the processes' titles are checked (Linux: /proc).
 */
export async function runningMaster(prefix: string): Promise<number | null> {
  const isOurs = async (pid: number) => {
    const title = await titleOf(pid);
    return title?.startsWith(MASTER) === true && title.includes(` -p ${prefix} `);
  };
  const pid = await pidFile(prefix);
  if (pid !== null && (await isOurs(pid))) return pid;
  const pids = await allPids();
  const ours = await Promise.all(pids.map(isOurs));
  return pids.find((_, index) => ours[index]) ?? null;
}

/**
 * Writes the master's pid file again if it was lost: nginx itself writes it only at its start, and `nginx -t` leaves an
 * empty one. Without it, the workers of a master that is killed aren't found.
 */
export async function keepPidFile(prefix: string): Promise<void> {
  const master = await runningMaster(prefix);
  if (master === null || master === (await pidFile(prefix))) return;
  await writeFile(join(prefix, 'nginx.pid'), `${master}\n`);
}

/** `pid` if it is an nginx master, under any prefix. */
export async function masterByPid(pid: number): Promise<number | null> {
  if (!Number.isInteger(pid) || pid <= 1) return null;
  return (await titleOf(pid))?.startsWith(MASTER) ? pid : null;
}

async function pidFile(prefix: string): Promise<number | null> {
  const text = await readFile(join(prefix, 'nginx.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return Number.isInteger(pid) && pid > 1 ? pid : null;
}

/**
 * Ends workers that outlived their killed master: they hold its sockets, so a new master can't listen. They are found
 * by the master's process group. On SIGQUIT they close the sockets and finish requests in flight.
 */
export async function retireOrphans(prefix: string): Promise<void> {
  const master = await pidFile(prefix);
  if (master === null || (await runningMaster(prefix)) !== null) return;
  const orphans = await workersOfGroup(master);
  for (const pid of orphans) process.kill(pid, 'SIGQUIT');
  const deadline = performance.now() + TERM_MS;
  while (!(await allRetired(orphans)) && performance.now() < deadline) await wait(POLL_MS);
}

async function allPids(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter(Number.isInteger);
}

async function workersOfGroup(group: number): Promise<number[]> {
  const pids = await allPids();
  const found = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      // `pid (name) state ppid pgrp …`: the name may contain anything, so fields are counted from its end (proc(5)).
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

/** The user that a process runs as; `null` if it has ended. */
export async function userOf(pid: number): Promise<number | null> {
  const user = /^Uid:\t([0-9]+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''))?.[1];
  return user === undefined ? null : Number(user);
}

/** True once every worker has closed its listening sockets (its title says so) or has ended. */
export async function allRetired(workers: readonly number[]): Promise<boolean> {
  const titles = await Promise.all(workers.map(titleOf));
  return titles.every((title) => title === null || title.includes('is shutting down'));
}

/**
 * Ends the nginx that runs under `prefix`, if any: gracefully, then by force. An earlier process may have started it.
 * Resolves when nginx has ended.
 */
export async function stopNginx(prefix: string): Promise<void> {
  await endNginx(prefix, GRACE_MS);
}

/** The same with another time for requests in flight, in milliseconds. */
export async function endNginx(prefix: string, graceMs: number): Promise<void> {
  const endings = [
    ['SIGQUIT', graceMs],
    ['SIGTERM', TERM_MS],
    ['SIGKILL', TERM_MS],
  ] as const;
  for (const [signal, timeoutMs] of endings) {
    const master = await runningMaster(prefix);
    if (master === null) break;
    try {
      process.kill(master, signal);
    } catch (error) {
      // It has ended since its id was read.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
    const deadline = performance.now() + timeoutMs;
    while ((await runningMaster(prefix)) !== null && performance.now() < deadline) await wait(POLL_MS);
  }
  await retireOrphans(prefix);
}

/** The command line; `null` if the process has ended (that of a zombie is empty). */
async function titleOf(pid: number): Promise<string | null> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return line === '' ? null : line.replaceAll('\0', ' ');
}
