import type { ChildProcess } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { backoffMs } from '../../../../base/backoff.ts';
import { LineSplitter, type SplitLine } from '../../../../base/line-splitter.ts';
import { LONGEST_LINE } from '../output/output.ts';

/** A process that has served this long started well: its next failure counts as the first. */
const SETTLED_MS = 60_000;
const GROUP_KILL_TIMEOUT_MS = 5_000;
const KEPT_LINES = 20;
/** Characters of a kept line. */
const LONGEST_KEPT = 4_096;

export interface SupervisorOptions {
  /** Starts the process. Called again after each end. */
  readonly spawn: () => ChildProcess;
  readonly onEnd: (end: ProcessEnd) => void;
  /** The process must send `{ type: 'ready', … }` over IPC, or it is killed. Unset: it is ready when spawned. */
  readonly readiness?: {
    readonly timeoutMs: number;
    readonly onReady: (message: ReadyMessage) => void;
  };
  /** The lines of an output stream, if it is a pipe; `null`: a line was too long. */
  readonly onLines?: (stream: 'stdout' | 'stderr', lines: readonly SplitLine[]) => void;
  /** The process leads a process group. `stop` kills the rest of the group after it. */
  readonly isGroupLeader?: boolean;
  /** Milliseconds until the restart after the given number of failures in a row. */
  readonly restartDelayMs?: (failures: number) => number;
  /** A monotonic clock, milliseconds. */
  readonly now?: () => number;
}

export type ReadyMessage = Readonly<Record<string, unknown>> & { readonly type: 'ready' };

export interface ProcessEnd {
  /** `null` unless the process exited by itself. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not be spawned, or that it was killed because it wasn't ready in time. */
  readonly error: Error | null;
  readonly wasReady: boolean;
  /** `stop` was called, so it isn't restarted. */
  readonly isStopped: boolean;
}

export interface Supervised {
  /** How the last process ended; `null` while one runs. */
  lastEnd(): ProcessEnd | null;
  /** The last lines of both output streams, oldest first; empty unless they are pipes. */
  lastLines(): readonly string[];
  /** Sends SIGTERM, and SIGKILL after the grace period. Resolves when the process has ended; it isn't restarted. */
  stop(graceMs: number): Promise<void>;
}

/** Runs a child process and restarts it whenever it ends, with exponential backoff while it keeps failing. */
export function supervise(options: SupervisorOptions): Supervised {
  const { spawn, onEnd, readiness, isGroupLeader = false } = options;
  const now = options.now ?? (() => performance.now());
  const restartDelayMs = options.restartDelayMs ?? ((failures) => backoffMs(failures, Math.random));
  const lines: string[] = [];
  let lastEnd: ProcessEnd | null = null;
  let failures = 0;
  let isStopped = false;
  let restart: NodeJS.Timeout | undefined;
  let child = start();

  function start(): ChildProcess {
    lastEnd = null;
    const started = spawn();
    let readyAt = readiness === undefined ? now() : null;
    let readyTimeout: NodeJS.Timeout | undefined;
    let timeoutError: Error | null = null;
    if (readiness !== undefined) {
      readyTimeout = setTimeout(() => {
        timeoutError = new Error('it did not get ready in time');
        // A process that hangs would keep its port from the next one.
        started.kill('SIGKILL');
      }, readiness.timeoutMs);
      started.on('message', (message) => {
        if (readyAt !== null || !isReadyMessage(message)) return;
        readyAt = now();
        clearTimeout(readyTimeout);
        readiness.onReady(message);
      });
    }
    const isPiped = collectLines(started, lines, options.onLines);
    let hasEnded = false;
    const ended = (end: Pick<ProcessEnd, 'code' | 'signal' | 'error'>) => {
      if (hasEnded) return;
      hasEnded = true;
      clearTimeout(readyTimeout);
      lastEnd = { ...end, wasReady: readyAt !== null, isStopped };
      if (!isStopped) {
        failures = readyAt !== null && now() - readyAt >= SETTLED_MS ? 1 : failures + 1;
        restart = setTimeout(() => {
          child = start();
        }, restartDelayMs(failures));
      }
      onEnd(lastEnd);
    };
    started.once('error', (error) => ended({ code: null, signal: null, error }));
    // `close` comes after the last output, but may come late or never if a grandchild inherited the pipes.
    started.once(isPiped ? 'close' : 'exit', (code, signal) => ended({ code, signal, error: timeoutError }));
    return started;
  }

  return {
    lastEnd: () => lastEnd,
    lastLines: () => lines,
    async stop(graceMs) {
      isStopped = true;
      clearTimeout(restart);
      const { pid } = child;
      if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      child.once(child.stdout === null ? 'exit' : 'close', () => resolve());
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await promise;
      clearTimeout(kill);
      if (isGroupLeader) await killGroup(pid);
    },
  };
}

/** `exit code 1`, `signal SIGKILL` or the message of the error. */
export function describeEnd({ code, signal, error }: ProcessEnd): string {
  if (error !== null) return error.message;
  return code === null ? `signal ${signal}` : `exit code ${code}`;
}

/** Keeps the last lines of both output streams in `kept`; false if they aren't pipes. */
function collectLines(
  { stdout, stderr }: ChildProcess,
  kept: string[],
  onLines: SupervisorOptions['onLines'],
): boolean {
  for (const [name, input] of [
    ['stdout', stdout],
    ['stderr', stderr],
  ] as const) {
    if (input === null) continue;
    const splitter = new LineSplitter(LONGEST_LINE);
    const take = (lines: SplitLine[]) => {
      if (lines.length === 0) return;
      onLines?.(name, lines);
      for (const line of lines.slice(-KEPT_LINES)) {
        kept.push(line?.slice(0, LONGEST_KEPT) ?? '[a line that is too long]');
        if (kept.length > KEPT_LINES) kept.shift();
      }
    };
    input.on('data', (chunk: Buffer) => take(splitter.push(chunk)));
    input.once('end', () => take(splitter.end()));
  }
  return stdout !== null || stderr !== null;
}

/** A process that was stopped while it started may have children of its own in its group. */
async function killGroup(leader: number): Promise<void> {
  const deadline = performance.now() + GROUP_KILL_TIMEOUT_MS;
  const isKilled = () => {
    try {
      return process.kill(-leader, 'SIGKILL');
    } catch {
      return false; // the group is empty
    }
  };
  while (isKilled() && performance.now() < deadline) await wait(10);
}

function isReadyMessage(message: unknown): message is ReadyMessage {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'ready';
}
