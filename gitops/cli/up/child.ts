import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { CliError } from '../output/cli-error.ts';

export interface ChildSpec {
  readonly name: string;
  /** A TypeScript entry file. It sends `{ type: 'ready', … }` over IPC when it accepts requests. */
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** V8's command line options. */
  readonly v8Options?: readonly string[];
  readonly logFile: string;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;
const GROUP_MS = 5_000;
/** A child that ran for this long started well, so its next restart has no pause of earlier failures. */
const STEADY_MS = 60_000;

/**
 * One process of the instance. It is restarted when it exits. It has a process group of its own, so Ctrl-C reaches the
 * parent only, and it exits when its IPC channel closes, so it never outlives the parent.
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

  /** Resolves with the child's ready message. Throws `CliError` with the end of its log if it exits before. */
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
    const timer = setTimeout(() => reject(new Error('it was not ready in time')), READY_MS);
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`it exited with ${signal ?? `code ${code}`}`)));
    child.on('message', (message) => {
      if (isReady(message)) resolve(message);
    });
    try {
      const message = await promise;
      const readyAt = performance.now();
      child.once('exit', (code, signal) => {
        if (this.#stopping) return;
        if (performance.now() - readyAt > STEADY_MS) this.#failures = 0;
        process.stderr.write(`${this.spec.name} exited with ${signal ?? `code ${code}`}; restarting it\n`);
        void this.#restart();
      });
      return message;
    } catch (cause) {
      // A child that hangs would keep its port from the next one.
      child.kill('SIGKILL');
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CliError(`${this.spec.name} could not start: ${reason}; ${await this.#endOfLog()}`, {
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

  async #endOfLog(): Promise<string> {
    const text = await readFile(this.spec.logFile, 'utf8').catch(() => '');
    const lines = text.trim().split('\n').slice(-3).join(' | ').slice(-600);
    return `its log ${this.spec.logFile} ends with: ${lines || '(empty)'}`;
  }
}

/** Kills the processes that a child started and did not stop, because it was stopped during its own start. */
async function endGroup(leader: number): Promise<void> {
  const deadline = Date.now() + GROUP_MS;
  while (killGroup(leader) && Date.now() < deadline) await wait(10);
}

/** False if the group has no process any more. */
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
