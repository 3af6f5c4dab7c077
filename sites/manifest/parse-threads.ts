import { Worker } from 'node:worker_threads';
import { limit } from '../../base/limit.ts';
import { siblingUrl } from '../../base/runtime/sibling.ts';
import type { ParsedManifest } from './load.ts';

export interface ParseJob {
  readonly text: string;
  readonly file: string;
}

/** The most threads at once. Each takes one core and 40 MB while it is in use. */
const MAX_THREADS = 2;
/** A thread without work ends after this time, milliseconds. */
const IDLE_MS = 5_000;
const MAX_HEAP_MB = 256;

/** The idle threads, each with the timer that ends it. */
const idle = new Map<Worker, NodeJS.Timeout>();
const limited = limit(MAX_THREADS);

/** Runs `parseManifest` in another thread. A text that crashes the thread counts as an invalid manifest. */
export async function parseInThread(job: ParseJob): Promise<ParsedManifest> {
  return await limited(() => parseIn(idle.keys().next().value ?? start(), job));
}

function start(): Worker {
  const thread = new Worker(siblingUrl('./parse-thread', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  // Without a listener, an error of an idle thread would end the process.
  thread.on('error', () => forget(thread));
  thread.on('exit', () => forget(thread));
  return thread;
}

async function parseIn(thread: Worker, job: ParseJob): Promise<ParsedManifest> {
  forget(thread);
  thread.ref();
  const { promise, resolve } = Promise.withResolvers<ParsedManifest>();
  const failed = (reason: string) =>
    resolve({
      ok: false,
      reason: 'InvalidManifest',
      problems: [{ path: '', message: `can't be parsed: ${reason}` }],
    });
  let hasAnswered = false;
  const onMessage = (parsed: ParsedManifest) => {
    hasAnswered = true;
    resolve(parsed);
  };
  const onError = (error: Error) => failed(error.message);
  const onExit = (code: number) => failed(`the parser ended with code ${code}`);
  thread.on('message', onMessage).on('error', onError).on('exit', onExit);
  try {
    thread.postMessage(job);
    return await promise;
  } finally {
    thread.off('message', onMessage).off('error', onError).off('exit', onExit);
    // A thread that reported an error is ending, but it may not have ended yet.
    if (hasAnswered) keepIdle(thread);
    else void thread.terminate();
  }
}

function keepIdle(thread: Worker): void {
  thread.unref();
  const timer = setTimeout(() => {
    forget(thread);
    void thread.terminate();
  }, IDLE_MS);
  idle.set(thread, timer.unref());
}

function forget(thread: Worker): void {
  clearTimeout(idle.get(thread));
  idle.delete(thread);
}
