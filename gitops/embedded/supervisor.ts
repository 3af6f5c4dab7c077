import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { backoffMs } from '../base/backoff.ts';

/** One that ran for this long has started well: its next death counts as the first again. */
const SETTLED_MS = 60_000;
const KEPT_LINES = 20;

export interface Supervised {
  /** Why it isn't running now (`exit code 1`); `null` while it is. */
  death(): string | null;
  /** What it wrote last, both streams, oldest first. */
  lastLines(): readonly string[];
  /** SIGTERM, after the grace SIGKILL; no restart. Resolves when it has ended. */
  stop(graceMs: number): Promise<void>;
}

/** Keeps a child running: started again after each death, with a growing wait while it keeps dying. */
export function supervise(spawn: () => ChildProcess, onDeath: () => void): Supervised {
  const lines: string[] = [];
  let death: string | null = null;
  let failures = 0;
  let stopped = false;
  let retry: NodeJS.Timeout | undefined;
  let child = start();

  function start(): ChildProcess {
    const startedAt = performance.now();
    const started = spawn();
    death = null;
    for (const stream of [started.stdout, started.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        if (lines.length > KEPT_LINES) lines.shift();
      });
    }
    const ended = (reason: string) => {
      // A child that couldn't be started says so by `error` alone, one that ran by `close`, with its output complete.
      if (death !== null || stopped) return;
      death = reason;
      failures = performance.now() - startedAt < SETTLED_MS ? failures + 1 : 1;
      retry = setTimeout(
        () => {
          child = start();
        },
        backoffMs(failures, Math.random),
      );
      onDeath();
    };
    started.once('error', (error) => ended(error.message));
    started.once('close', (code, signal) => ended(code === null ? `signal ${signal}` : `exit code ${code}`));
    return started;
  }

  return {
    death: () => death,
    lastLines: () => lines,
    async stop(graceMs) {
      stopped = true;
      clearTimeout(retry);
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      child.once('close', () => resolve());
      child.kill('SIGTERM');
      const patience = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await promise;
      clearTimeout(patience);
    },
  };
}
