import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { stopNginx } from '../../appliers/proxy/nginx/process.ts';
import type { Home } from '../instance/home.ts';

/** The instance's child processes. `script` distinguishes a child from another process that got its pid. */
type Pids = readonly { readonly pid: number; readonly script: string }[];

const CHILDREN = 'children.json';
const GRACE_MS = 10_000;

/** Saves the pids synchronously, so that a kill of this process loses no child that has just started. */
export function rememberPids(home: Home, pids: Pids): void {
  writeFileSync(home.at(CHILDREN), JSON.stringify(pids), { mode: 0o600 });
}

/**
 * Ends the processes that a killed instance did not stop, so that their ports are free: its children, which exit on
 * their own or are killed after `graceMs`, and nginx. The system ends workerd with its parent.
 */
export async function clearLeftovers(home: Home, graceMs = GRACE_MS): Promise<void> {
  await endChildren(home.at(CHILDREN), graceMs);
  await stopNginx(home.at('provisioner', 'proxy'));
}

async function endChildren(path: string, graceMs: number): Promise<void> {
  const pids = await readFile(path, 'utf8').then(parse, () => []);
  const deadline = Date.now() + graceMs;
  for (const { pid, script } of pids) {
    while ((await runs(pid, script)) && Date.now() < deadline) await wait(50);
    if (await runs(pid, script)) process.kill(pid, 'SIGKILL');
    while (await runs(pid, script)) await wait(20);
  }
}

function parse(text: string): Pids {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is Pids[number] {
  return (
    typeof value === 'object' &&
    value !== null &&
    'pid' in value &&
    typeof value.pid === 'number' &&
    'script' in value &&
    typeof value.script === 'string'
  );
}

async function runs(pid: number, script: string): Promise<boolean> {
  const [command, status] = await Promise.all([
    readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''),
  ]);
  const zombie = /\) Z /.test(status);
  return !zombie && command.split('\0').includes(script);
}
