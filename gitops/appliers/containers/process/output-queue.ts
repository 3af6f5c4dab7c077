import type { SplitLine } from '../../../../base/line-splitter.ts';
import type { OutputLine, OutputStream } from '../output/output.ts';

/** The most lines and characters that wait for a reader. Lines beyond that are only counted. */
const MOST_LINES = 5_000;
const MOST_CHARACTERS = 4 * 1024 * 1024;

/** The lines of a child process, from when it prints them until they are read. They can be read once. */
export class OutputQueue {
  #lines: OutputLine[] = [];
  #characters = 0;
  #lost = 0;
  #hasEnded = false;
  #arrived = Promise.withResolvers<void>();

  /** From now on, a process prints lines. */
  open(): void {
    this.#hasEnded = false;
  }

  push(stream: OutputStream, lines: readonly SplitLine[]): void {
    const time = new Date().toISOString();
    for (const text of lines) {
      if (this.#lines.length >= MOST_LINES || this.#characters >= MOST_CHARACTERS) {
        this.#lost += 1;
        continue;
      }
      this.#characters += text?.length ?? 0;
      this.#lines.push({ stream, time, text, position: null, ...(text === null ? { lost: 1 } : {}) });
    }
    this.#arrived.resolve();
  }

  /** The process has ended, and prints nothing more. */
  end(): void {
    this.#hasEnded = true;
    this.#arrived.resolve();
  }

  /** Hands over what arrives, until the end or the signal. */
  async follow(write: (lines: readonly OutputLine[]) => Promise<void>, signal: AbortSignal): Promise<void> {
    const stop = () => this.#arrived.resolve();
    signal.addEventListener('abort', stop, { once: true });
    try {
      while (!signal.aborted) {
        await this.#arrived.promise;
        this.#arrived = Promise.withResolvers();
        const lines = this.#take();
        if (lines.length > 0) await write(lines);
        else if (this.#hasEnded) return;
        if (this.#hasEnded) this.#arrived.resolve();
      }
    } finally {
      signal.removeEventListener('abort', stop);
      this.#arrived.resolve();
    }
  }

  #take(): OutputLine[] {
    const lines = this.#lines;
    if (this.#lost > 0) {
      const time = new Date().toISOString();
      lines.push({ stream: 'stdout', time, text: null, lost: this.#lost, position: null });
    }
    this.#lines = [];
    this.#characters = 0;
    this.#lost = 0;
    return lines;
  }
}
