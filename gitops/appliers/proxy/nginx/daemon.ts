import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { CommandError, runCommand } from '../../../clients/command.ts';
import { ErrorLog } from './error-log.ts';
import { Generations } from './generations.ts';
import type { ConfigFault } from './isolate.ts';
import { NameConflict } from './name-conflict.ts';
import { allRetired, keepPidFile, retireOrphans, runningMaster, userOf, workersOf } from './process.ts';

const POLL_MS = 20;
const VERSION_TIMEOUT_MS = 1_000;
/** Reading 1,000 sites takes 3 s of CPU, up to a minute on a busy machine. */
const TEST_TIMEOUT_MS = 180_000;
/** Matches nginx's message if the system refused a call (`(24: Too many open files)`), or if a name didn't resolve. */
const HOST_CAUSE = /\([0-9]+: [^)]+\)|host not found/;
/** Interval of the checks of a master that isn't our child: its exit emits no event. */
const WATCH_MS = 2_000;

export interface DaemonSettings {
  readonly bin: string;
  readonly prefix: string;
  readonly statusPort: number;
  readonly timeoutMs: number;
}

/**
 * Tagyard's own nginx under its own prefix. It is a child that outlives this process, so neither the end nor a crash of
 * this process interrupts a visitor. A later process finds it by its pid file. Emits `lost` when it ends unexpectedly.
 */
export class NginxDaemon extends EventEmitter<{ lost: [] }> {
  readonly #settings: DaemonSettings;
  #released = false;
  #watch: NodeJS.Timeout | undefined;
  #child: ChildProcess | null = null;
  /** How the child of this process ended; `null`: it has not ended. */
  #ended: string | null = null;
  /** How long the last test of a configuration took. With 1,000 sites, a reload takes as long. */
  #readingMs = 0;

  constructor(settings: DaemonSettings) {
    super();
    this.#settings = settings;
  }

  async prepare(): Promise<void> {
    const { prefix } = this.#settings;
    for (const name of ['logs/sites', 'temp'])
      await mkdir(join(prefix, name), { recursive: true, mode: 0o700 });
  }

  /**
   * Runs `nginx -t` on the staged candidate. A name that two vhosts claim is also a fault, although nginx only warns. A
   * fault counts as a site's own only if nginx names the site's file and the host isn't the cause.
   */
  async test(): Promise<ConfigFault | null> {
    const { bin, prefix } = this.#settings;
    const startedAt = performance.now();
    const args = ['-t', '-p', prefix, '-e', 'stderr', '-c', Generations.candidateConfig];
    try {
      const { stderr } = await runCommand(bin, args, { timeoutMs: TEST_TIMEOUT_MS });
      const [error] = NameConflict.all(stderr);
      return error === undefined ? null : { error, file: null };
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (error.exitCode === null) throw new RetryableError(error.message, { cause: error });
      const message = error.stderr.split('\n').find((line) => line.includes('[emerg]')) ?? error.message;
      const said = message.replace(/^.*\[emerg\] (?:[0-9]+#[0-9]+: )?/, '');
      const file = /\/sites\/([^/:]+\.conf):[0-9]+$/.exec(said.trim())?.[1] ?? null;
      const isOfSite = file !== null && !HOST_CAUSE.test(said);
      return {
        error: new TerminalError(`nginx refuses it: ${said}`, { cause: error, isOfSite }),
        file,
      };
    } finally {
      this.#readingMs = performance.now() - startedAt;
    }
  }

  /** The answer of the version endpoint; `null` if it doesn't answer, or if the workers have no master. */
  async servedVersion(): Promise<string | null> {
    if ((await this.master()) === null) return null;
    try {
      const response = await fetch(`http://127.0.0.1:${this.#settings.statusPort}/generation`, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(VERSION_TIMEOUT_MS),
      });
      return await response.text();
    } catch {
      return null;
    }
  }

  /**
   * Makes nginx serve the current tree, by a start or a reload. Waits until it serves `version` and no old worker
   * accepts connections. If nginx ends first or that takes too long, throws `RetryableError` with the messages in
   * nginx's log. `_fresh`: the texts of new and changed files, for a subclass that searches them for name conflicts.
   */
  async activate(version: string, _fresh: readonly string[]): Promise<void> {
    const { prefix } = this.#settings;
    const timeoutMs = Math.round(this.#settings.timeoutMs + 5 * this.#readingMs);
    const log = await ErrorLog.fromNow(join(prefix, 'logs', 'error.log'));
    const master = await this.master();
    const old = master === null ? [] : await workersOf(master);
    if (master === null) {
      await this.launch();
    } else this.#reload(master);

    const deadline = performance.now() + timeoutMs;
    for (;;) {
      if ((await this.servedVersion()) === version && (await allRetired(old))) {
        await keepPidFile(prefix);
        return;
      }
      const ended = master === null ? this.#ended : null;
      if (ended !== null || performance.now() >= deadline) {
        const what = ended ?? `nginx doesn’t serve the new generation after ${timeoutMs} ms`;
        throw new RetryableError([what, ...(await log.errors())].join('; '));
      }
      await wait(POLL_MS);
    }
  }

  async isRunning(): Promise<boolean> {
    return (await this.master()) !== null;
  }

  /** Makes nginx read the current tree again, without waiting. */
  async reread(): Promise<void> {
    const master = await this.master();
    if (master !== null) this.#reload(master);
  }

  /**
   * Makes nginx reopen its logs, without waiting. Workers reopen them by path. Workers of another user than the
   * master's can't enter Tagyard's folders, so then nginx is reloaded instead.
   */
  async reopenLogs(): Promise<void> {
    const master = await this.master();
    if (master === null) return;
    const [user, ...users] = await Promise.all([master, ...(await workersOf(master))].map(userOf));
    if (users.every((one) => one === null || one === user)) process.kill(master, 'SIGUSR1');
    else this.#reload(master);
  }

  /** Watches a master that an earlier process started. */
  async adopt(): Promise<void> {
    if ((await this.master()) === null) return;
    await keepPidFile(this.#settings.prefix);
    this.#watchAdopted();
  }

  /** Stops emitting `lost`. nginx keeps running. */
  release(): void {
    this.#released = true;
    clearInterval(this.#watch);
  }

  /** The process id of the master; `null` if there is none. */
  protected async master(): Promise<number | null> {
    return await runningMaster(this.#settings.prefix);
  }

  #reload(master: number): void {
    process.kill(master, 'SIGHUP');
    this.#watchAdopted();
  }

  protected async launch(): Promise<void> {
    const { bin, prefix } = this.#settings;
    await retireOrphans(prefix);
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#ended = null;
    // Detached, so that it doesn't receive Ctrl-C. It inherits only PATH: the environment contains secrets.
    const child = spawn(bin, ['-p', prefix, '-e', 'logs/error.log', '-c', Generations.currentConfig], {
      detached: true,
      stdio: 'ignore',
      env: { PATH: process.env.PATH },
    });
    this.#child = child;
    const onEnd = (reason: string) => {
      if (this.#child !== child) return;
      this.#child = null;
      this.#ended = reason;
      if (!this.#released) this.emit('lost');
    };
    child.once('exit', (code, signal) => onEnd(`nginx ended (${signal ?? `code ${code}`})`));
    child.once('error', (error) => onEnd(`nginx can’t be started: ${error.message}`));
    child.unref();
  }

  #watchAdopted(): void {
    if (this.#watch !== undefined || this.#child !== null) return;
    const check = async () => {
      if ((await this.master()) !== null) return;
      clearInterval(this.#watch);
      this.#watch = undefined;
      if (!this.#released) this.emit('lost');
    };
    this.#watch = setInterval(() => void check(), WATCH_MS).unref();
  }
}
