import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  type ProcessEnd,
  type ReadyMessage,
  type Supervised,
  supervise,
} from '../../appliers/containers/process/supervisor.ts';
import { CliError } from '../output/cli-error.ts';

export interface ChildSpec {
  readonly name: string;
  /** The part's entry file. It sends `{ type: 'ready', … }` to its parent when it accepts requests. */
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** V8 options of its process. */
  readonly v8Options?: readonly string[];
  readonly logFile: string;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;

/**
 * One of the instance's parts. Its process has a group of its own, so Ctrl-C reaches only the parent. It exits when its IPC
 * channel closes, so it never outlives the parent.
 */
export class Child {
  readonly spec: ChildSpec;
  readonly #onSpawn: () => void;
  #running: ChildProcess | null = null;
  #supervised: Supervised | null = null;

  constructor(spec: ChildSpec, onSpawn: () => void) {
    this.spec = spec;
    this.#onSpawn = onSpawn;
  }

  /** `null`: it isn't started. */
  get pid(): number | null {
    return this.#running?.pid ?? null;
  }

  /**
   * Starts the part, and restarts it whenever it ends from then on. Resolves with its ready message. Throws
   * `CliError` with the end of its log if it ends before it is ready.
   */
  async start(): Promise<ReadyMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<ReadyMessage>();
    let isStarted = false;
    const supervised = supervise({
      spawn: () => {
        this.#running = this.#spawn();
        this.#onSpawn();
        return this.#running;
      },
      isGroupLeader: true,
      readiness: {
        timeoutMs: READY_MS,
        onReady(message) {
          isStarted = true;
          resolve(message);
        },
      },
      onEnd: (end) => {
        if (!isStarted) reject(new Error(reasonOf(end)));
        else if (!end.isStopped) void this.#report(end);
      },
    });
    this.#supervised = supervised;
    try {
      return await promise;
    } catch (cause) {
      await supervised.stop(0);
      throw new CliError(await this.#startFailure(cause instanceof Error ? cause.message : String(cause)), {
        cause,
      });
    }
  }

  async stop(): Promise<void> {
    await this.#supervised?.stop(STOP_MS);
  }

  #spawn(): ChildProcess {
    const { script, env, v8Options = [], logFile } = this.spec;
    const log = openSync(logFile, 'a', 0o600);
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...v8Options, script], {
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log, 'ipc'],
      detached: true,
    });
    // The child has descriptors of its own.
    closeSync(log);
    return child;
  }

  async #report(end: ProcessEnd): Promise<void> {
    const message = end.wasReady
      ? `${this.spec.name} ended with ${endedWith(end)}; starting it again`
      : await this.#startFailure(reasonOf(end));
    process.stderr.write(`${message}\n`);
  }

  async #startFailure(reason: string): Promise<string> {
    const { name, logFile } = this.spec;
    const text = await readFile(logFile, 'utf8').catch(() => '');
    const lines = text.trim().split('\n').slice(-3).join(' | ').slice(-600);
    return `${name} could not start: ${reason}; its log (${logFile}) ends with: ${lines || 'nothing'}`;
  }
}

function reasonOf(end: ProcessEnd): string {
  return end.error === null ? `it ended with ${endedWith(end)}` : end.error.message;
}

function endedWith({ code, signal }: ProcessEnd): string {
  return signal ?? `code ${code}`;
}
