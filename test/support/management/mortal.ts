import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { eventually } from '../eventually.ts';
import { mortalReport, type mortalSettings, mortalTask } from './mortal-settings.ts';

const MAIN = fileURLToPath(new URL('mortal-main.ts', import.meta.url));

/** Management processes, each of which may kill itself at a write or call. While one runs, the next is started. */
export class Mortals {
  readonly #settings: z.input<typeof mortalSettings>;
  readonly #all: ChildProcess[] = [];
  #spare: Promise<ChildProcess> | null = null;

  constructor(settings: z.input<typeof mortalSettings>) {
    this.#settings = settings;
  }

  /**
   * Makes a request and waits until `idle` reports that nothing is left to do. Resolves to the process's report; `null`:
   * it was killed before.
   */
  async run(
    task: z.input<typeof mortalTask>,
    idle: () => Promise<boolean>,
  ): Promise<z.output<typeof mortalReport> | null> {
    const child = await (this.#spare ?? this.#start());
    this.#spare = this.#start();
    let errors = '';
    child.stderr?.on('data', (chunk) => {
      errors += String(chunk);
    });
    const exited = once(child, 'exit');
    child.send(mortalTask.parse(task));
    const alive = await Promise.race([once(child, 'message'), exited.then(() => null)]);
    if (alive !== null) {
      await eventually(async () => {
        if (child.signalCode === null && !(await idle())) throw new Error('the process is not idle yet');
      });
    }
    if (child.signalCode === null && child.connected) {
      const report = once(child, 'message');
      child.send('end');
      const ended = await Promise.race([report, exited.then(() => null)]);
      if (ended !== null) return mortalReport.parse(ended[0]);
    }
    await exited;
    if (child.signalCode !== 'SIGKILL') throw new Error(`the process failed: ${errors}`);
    return null;
  }

  end(): void {
    for (const child of this.#all) child.kill('SIGKILL');
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(MAIN, [JSON.stringify(this.#settings)], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      execArgv: [],
    });
    this.#all.push(child);
    await once(child, 'message');
    return child;
  }
}
