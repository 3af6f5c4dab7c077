import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execa } from 'execa';
import { PATH_WITH_SBIN } from '../components.ts';

/** Runs a program of this machine, and returns what it prints. */
export const run = async (command: string, ...args: string[]): Promise<string> =>
  (await execa(command, args, { env: { PATH: PATH_WITH_SBIN } })).stdout;

/** `ip` with the arguments of one line, in a network namespace or on the machine itself. */
export async function ip(line: string, namespace?: string): Promise<void> {
  const args = line.split(' ');
  await (namespace === undefined
    ? run('ip', ...args)
    : run('nsenter', `--net=/run/netns/${namespace}`, 'ip', ...args));
}

/** One long-running process of a cluster. It ends with this process, however that ends. */
export class Part {
  readonly #start: () => ChildProcess;
  readonly #log: string;
  #child: ChildProcess;

  /** `log`: the file that gets its output. */
  constructor({ log, argv, env = {} }: { log: string; argv: readonly string[]; env?: NodeJS.ProcessEnv }) {
    this.#log = log;
    this.#start = () => {
      const output = openSync(log, 'a');
      const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], {
        stdio: ['ignore', output, output],
        env: { PATH: PATH_WITH_SBIN, HOME: '/root', ...env },
      });
      closeSync(output);
      return child;
    };
    this.#child = this.#start();
  }

  /** Starts it again after its end. */
  start(): void {
    this.#child = this.#start();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Throws an `Error` with the last lines of its output if it has ended. */
  check(): void {
    if (this.isRunning) return;
    const lines = readFileSync(this.#log, 'utf8').trimEnd().split('\n').slice(-8);
    throw new Error(`${this.#log}: the process has ended\n${lines.join('\n')}`);
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.isRunning) return;
    this.#child.kill(signal);
    await once(this.#child, 'exit');
  }
}

const CGROUPS = '/sys/fs/cgroup';

/** The folders of a control group: one for each controller in version 1, a single one in version 2. */
async function groupFolders(name: string): Promise<string[]> {
  if (existsSync(join(CGROUPS, 'cgroup.controllers'))) return [join(CGROUPS, name)];
  const entries = await readdir(CGROUPS, { withFileTypes: true });
  return entries.filter((one) => one.isDirectory()).map((one) => join(CGROUPS, one.name, name));
}

/** Creates the control group under which a kubelet puts its pods. */
export async function createGroup(name: string): Promise<void> {
  for (const folder of await groupFolders(name)) {
    await mkdir(folder, { recursive: true });
    // A new group of version 1 has no cores and no memory nodes of its own.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const own = join(folder, file);
      if (basename(join(folder, '..')) === 'cpuset') {
        await writeFile(own, await readFile(join(folder, '..', file), 'utf8'));
      }
    }
  }
}

/** Removes the control groups whose names begin with `prefix`. They must have no process any more. */
export async function removeGroups(prefix: string): Promise<void> {
  for (const parent of new Set((await groupFolders(prefix)).map((folder) => join(folder, '..')))) {
    for (const name of await readdir(parent)) {
      if (name.startsWith(prefix)) await removeTree(join(parent, name));
    }
  }
}

async function removeTree(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(folder, entry.name));
  await rmdir(folder).catch(() => undefined);
}
