import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { CliError } from '../output/cli-error.ts';

export interface ChildSpec {
  readonly name: string;
  /** A TypeScript root; it sends `{ type: 'ready', … }` over IPC when it answers. */
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** How V8 is started for it. */
  readonly v8Options?: readonly string[];
  readonly logFile: string;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;
const GROUP_MS = 5_000;
/** A part that has run this long wasn't broken when it started. */
const STEADY_MS = 60_000;

/**
 * One of the instance's processes: started, awaited, started again when it dies, stopped. It lives in a process group
 * of its own, so that Ctrl-C reaches only us, and it ends by itself when its IPC channel closes, so that it never
 * outlives us.
 */
export class Child {
  readonly spec: ChildSpec;
  readonly #onPids: () => void;
  #process: ChildProcess | null = null;
  #stopping = false;
  #failures = 0;

  constructor(spec: ChildSpec, onPids: () => void) {
    this.spec = spec;
    this.#onPids = onPids;
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Resolves with the child's ready message; throws `CliError` with its last words where it ends before. */
  async start(): Promise<Record<string, unknown>> {
    const options = ['--disable-warning=ExperimentalWarning', ...(this.spec.v8Options ?? [])];
    const log = openSync(this.spec.logFile, 'a', 0o600);
    const child = spawn(process.execPath, [...options, this.spec.script], {
      env: { ...process.env, ...this.spec.env },
      stdio: ['ignore', log, log, 'ipc'],
      detached: true,
    });
    this.#process = child;
    this.#onPids();
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
    const timer = setTimeout(() => reject(new Error('it did not get ready in time')), READY_MS);
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`it ended with ${signal ?? `code ${code}`}`)));
    child.on('message', (message) => {
      if (isReady(message)) resolve(message);
    });
    try {
      const message = await promise;
      const readyAt = performance.now();
      child.once('exit', (code, signal) => {
        if (this.#stopping) return;
        // One that has served for a while starts its pauses afresh.
        if (performance.now() - readyAt > STEADY_MS) this.#failures = 0;
        process.stderr.write(`${this.spec.name} ended with ${signal ?? `code ${code}`}; starting it again\n`);
        void this.#restart();
      });
      return message;
    } catch (cause) {
      // One that hangs would go on holding its port against the next.
      child.kill('SIGKILL');
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CliError(`${this.spec.name} could not start: ${reason}; ${await this.#lastWords()}`, {
        cause,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    const child = this.#process;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await promise;
    clearTimeout(timer);
    if (child.pid !== undefined) await endGroup(child.pid);
  }

  async #restart(): Promise<void> {
    while (!this.#stopping) {
      this.#failures += 1;
      await wait(backoffMs(this.#failures, Math.random));
      if (this.#stopping) return;
      try {
        await this.start();
        return;
      } catch (error) {
        if (!(error instanceof CliError)) throw error;
        process.stderr.write(`${error.message}\n`);
      }
    }
  }

  async #lastWords(): Promise<string> {
    const text = await readFile(this.spec.logFile, 'utf8').catch(() => '');
    const lines = text.trim().split('\n').slice(-3).join(' | ').slice(-600);
    return `its log (${this.spec.logFile}) ends with: ${lines || 'nothing'}`;
  }
}

/** One that was stopped in the middle of its start may leave processes of its own: they end with its group. */
async function endGroup(leader: number): Promise<void> {
  const deadline = Date.now() + GROUP_MS;
  while (killGroup(leader) && Date.now() < deadline) await wait(10);
}

/** False where nobody is left in it. */
function killGroup(leader: number): boolean {
  try {
    return process.kill(-leader, 'SIGKILL');
  } catch {
    return false;
  }
}

function isReady(message: unknown): message is Record<string, unknown> & { type: 'ready' } {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'ready';
}
