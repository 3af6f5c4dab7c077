import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type Run, runSchema } from '../../gitops/cli/instance/run-schema.ts';
import { MACHINE_PATH, missing } from './components.ts';
import { eventually } from './eventually.ts';
import { signal } from './signal.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const START_DEADLINE_MS = 120_000;
const STOP_DEADLINE_MS = 60_000;

export interface Instance extends AsyncDisposable {
  readonly run: Run;
  /** The process of the command itself; `run.pid` is the instance's, which npm starts. */
  readonly pid: number;
  /** Seconds from the start of the command until `run.json` exists. */
  readonly readyAfter: number;
  /** Sends SIGTERM and waits until the command exits. Throws with its output if it doesn't exit in time. */
  stop(): Promise<void>;
}

/**
 * A home folder for one instance: `using home = temporaryHome();`. The end of the scope removes the folder, and the
 * containers that a stopped instance keeps for its next start.
 */
export function temporaryHome(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'tagyard-home-'));
  return {
    path,
    [Symbol.dispose]() {
      removeContainers(path);
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function removeContainers(home: string): void {
  const file = join(home, 'instance.json');
  if (!existsSync(file) || missing('docker') !== null) return;
  const parsed = named.safeParse(readJson(file));
  if (!parsed.success) return;
  const env = { ...process.env, PATH: MACHINE_PATH };
  const docker = (...args: string[]) => execFileSync('docker', args, { env, encoding: 'utf8' });
  const ids = docker('ps', '--all', '--quiet', '--filter', `name=tagyard-${parsed.data.instance}-`);
  const list = ids.split('\n').filter((id) => id !== '');
  if (list.length > 0) docker('rm', '--force', ...list);
}

const named = z.object({ instance: z.string() });

/** Returns `null` if the file is not JSON, because a test damaged it. */
function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Runs `npm start` as a user does, or another command that starts an instance, with a home folder and free ports.
 * Resolves when the instance is ready.
 */
export async function startInstance(
  home: string,
  env: NodeJS.ProcessEnv = {},
  { file: program, args, cwd } = NPM_START,
): Promise<Instance> {
  const file = join(home, 'run.json');
  // A killed instance doesn't remove its file, and the loop below must not read that one.
  rmSync(file, { force: true });
  const started = performance.now();
  const child = spawn(program, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...FREE_PORTS, TAGYARD_HOME: home, ...env },
  });
  const output = collectOutput(child);
  const run = await eventually(
    () => {
      if (hasExited(child)) throw new Gone(output());
      return runSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
    },
    { timeoutMs: START_DEADLINE_MS, intervalMs: 20, until: (error) => error instanceof Gone },
  ).catch(async (error: unknown) => {
    child.kill('SIGTERM');
    throw new Error(`${program} ${args.join(' ')} did not become ready:\n${output()}`, { cause: error });
  });
  const readyAfter = (performance.now() - started) / 1000;

  async function stop(): Promise<void> {
    if (hasExited(child)) return;
    const exit = once(child, 'exit', { signal: AbortSignal.timeout(STOP_DEADLINE_MS) });
    signal(run.pid, 'SIGTERM');
    await exit.catch((cause: unknown) => {
      child.kill('SIGKILL');
      throw new Error(`${program} ${args.join(' ')} did not stop on SIGTERM:\n${output()}`, { cause });
    });
    if (existsSync(file)) throw new Error('run.json still exists after a clean stop');
  }
  return { run, pid: child.pid ?? run.pid, readyAfter, stop, [Symbol.asyncDispose]: stop };
}

const NPM_START = { file: 'npm', args: ['start', '--silent'], cwd: ROOT };

/** The command ended before it was ready. */
class Gone extends Error {
  override name = 'Gone';
}

const FREE_PORTS = { MANAGEMENT_PORT: '0', PROVISIONER_PORT: '0', EDGE_PORT: '0', PROXY_PORT: '0' };

const hasExited = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

function collectOutput(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-8_000);
    });
  }
  return () => text;
}
