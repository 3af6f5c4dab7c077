import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { z } from 'zod';
import { cpuMs } from './cpu.ts';

/** The options that a measured process gets as its argument. */
interface ChildOptions {
  readonly kubeconfig: string;
  readonly sites: number;
}
const childOptions = z.object({ kubeconfig: z.string(), sites: z.number() });
const request = z.object({ ask: z.string(), value: z.number() });
const answer = z.union([z.object({ result: z.number() }), z.object({ error: z.string() })]);

/** In the measured process: does the work that each message asks for, and answers it. */
export async function serveChild(
  prepare: (options: ChildOptions) => Promise<Readonly<Record<string, (value: number) => Promise<number>>>>,
): Promise<void> {
  const works = await prepare(childOptions.parse(JSON.parse(process.argv[2] ?? '')));
  process.on('message', (message) => {
    const { ask, value } = request.parse(message);
    const work = works[ask];
    if (work === undefined) throw new Error(`the measured process has no work named ${ask}`);
    work(value).then(
      (result) => process.send?.({ result }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
  process.send?.({ result: 0 });
}

/** A process of its own, so that its CPU time contains only the measured work. */
export class BenchChild implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exited: Promise<never>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#exited = once(child, 'exit').then(() => Promise.reject(new Error('the measured process ended')));
    this.#exited.catch(() => undefined);
  }

  /** Resolves when it has loaded its code and its sites. */
  static async start(file: string, options: ChildOptions): Promise<BenchChild> {
    const own = new BenchChild(fork(new URL(file, import.meta.url), [JSON.stringify(options)]));
    await own.#answer();
    return own;
  }

  /** User and system time so far. */
  get cpuMs(): number {
    return cpuMs(this.#child.pid ?? 0);
  }

  async ask(what: string, value = 0): Promise<number> {
    const answered = this.#answer();
    this.#child.send({ ask: what, value });
    return await answered;
  }

  async #answer(): Promise<number> {
    const [message] = await Promise.race([once(this.#child, 'message'), this.#exited]);
    const found = answer.parse(message);
    if ('error' in found) throw new Error(found.error);
    return found.result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
