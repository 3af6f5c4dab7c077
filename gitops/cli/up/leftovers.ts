import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { stopNginx } from '../../appliers/proxy/nginx/process.ts';
import { endOrphans } from '../../embedded/cloudflare/orphans.ts';
import type { Home } from '../instance/home.ts';

/** Processes of ours with the script that each runs, so that a recycled pid is never taken for one of them. */
export type Pids = readonly { readonly pid: number; readonly script: string }[];

const CHILDREN = 'children.json';
const GRACE_MS = 10_000;

/** At once, so that no child is ever alive and unknown for longer than it takes to write a line. */
export function rememberPids(home: Home, pids: Pids): void {
  writeFileSync(home.at(CHILDREN), JSON.stringify(pids), { mode: 0o600 });
}

/**
 * Ends what a killed instance left behind, before its ports are settled: its children, which end by themselves and are
 * ended if they don't, and what those leave behind in turn when they are killed too (workerd, nginx).
 */
export async function clearLeftovers(home: Home): Promise<void> {
  await endChildren(home.at(CHILDREN));
  await endOrphans(home.at('edge', 'children.json'));
  await stopNginx(home.at('provisioner', 'proxy'));
}

async function endChildren(path: string): Promise<void> {
  const pids = await readFile(path, 'utf8').then(parse, () => []);
  const deadline = Date.now() + GRACE_MS;
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
