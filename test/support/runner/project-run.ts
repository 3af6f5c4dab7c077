import { spawn, spawnSync } from 'node:child_process';
import { globSync, mkdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join, matchesGlob, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECTS } from '../../projects.ts';
import type { FileOutcome } from '../report.ts';
import type { Message } from './reporter.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Vitest's own output of each project, with diffs and stacks. */
export const LOGS = 'node_modules/.cache/tests';

/** The test files of a project that a filter selects, by name; without a filter all of them. Paths from the root. */
export function filesOf(name: string, filters: readonly string[] = []): string[] {
  const { include = [], exclude = [] } = PROJECTS[name] ?? {};
  // Vitest also takes a path with a line's number, and an absolute path.
  const parts = filters.map((filter) => relative('', filter.replace(/:\d+$/, '')));
  return globSync(include, { cwd: ROOT })
    .filter((path) => !exclude.some((pattern) => matchesGlob(path, pattern)))
    .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
    .sort();
}

/**
 * Prepares a new network namespace, and runs the command in its arguments. With loopback alone, Chromium takes the
 * machine to be offline. So there is another interface, with an address that is reserved for benchmarks (RFC 2544).
 */
const IN_NEW_NETWORK = [
  'ip link set lo up',
  'ip link add machine type veth peer name nowhere',
  'ip addr add 198.19.0.1/32 dev machine',
  'ip link set nowhere up',
  'ip link set machine up',
  'exec "$0" "$@"',
].join(' && ');

const inNewNetwork = (...command: readonly string[]) => ['--net', 'sh', '-c', IN_NEW_NETWORK, ...command];

/** Whether this machine can make network namespaces: a container's root may have no right to, or lack `ip`. */
export function canMakeNetworks(): boolean {
  return spawnSync('unshare', inNewNetwork('true'), { stdio: 'ignore' }).status === 0;
}

interface Run {
  readonly filters: readonly string[];
  /** The number of files that may run at once, in a project that allows it. */
  readonly workers: number;
  readonly inOwnNetwork: boolean;
  /** Called for each file when it ends. */
  readonly ended: (outcome: FileOutcome) => void;
}

/**
 * Runs a project's files in a process of Vitest. Resolves to the errors outside of tests. A file without an outcome
 * when the process ends counts as failed.
 */
export async function runProject(name: string, { filters, workers, inOwnNetwork, ended }: Run) {
  const argv = ['node_modules/vitest/vitest.mjs', 'run', '--project', name, `--maxWorkers=${workers}`];
  const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'reporter.ts')}`];
  const [command, ...args] = [
    ...(inOwnNetwork ? ['unshare', ...inNewNetwork()] : []),
    process.execPath,
    ...argv,
    ...reporters,
    ...filters,
  ] as [string, ...string[]]; // at least Node's path
  const waiting = new Set(filesOf(name, filters));
  const stray: string[] = [];
  mkdirSync(join(ROOT, LOGS), { recursive: true });
  await using log = await open(join(ROOT, LOGS, `${name}.log`), 'w');
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', log.fd, log.fd, 'ipc'] });
  child.on('message', (message: Message) => {
    if ('stray' in message) return void stray.push(`${name}: ${message.stray}`);
    waiting.delete(message.file.path);
    ended(message.file);
  });
  const { promise, resolve } = Promise.withResolvers<string>();
  child.once('error', ({ message }) => resolve(message));
  child.once('close', (code, signal) => resolve(`ended with ${code ?? signal}`));
  const end = await promise;
  for (const path of waiting) {
    const failures = [`the process of the project ${name}: ${end}; see ${LOGS}/${name}.log`];
    ended({ path, passed: 0, failed: 1, skipped: 0, seconds: 0, failures });
  }
  return stray;
}
