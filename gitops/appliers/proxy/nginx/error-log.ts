import { open, stat } from 'node:fs/promises';

const MAX_LINES = 3;
const MAX_BYTES = 64 * 1024;

/** The part of nginx's log after a given moment. */
export class ErrorLog {
  readonly #path: string;
  readonly #from: number;

  private constructor(path: string, from: number) {
    this.#path = path;
    this.#from = from;
  }

  static async fromNow(path: string): Promise<ErrorLog> {
    const size = await stat(path).then(
      ({ size }) => size,
      () => 0,
    );
    return new ErrorLog(path, size);
  }

  /** The first errors after that moment, without time and process id. */
  async errors(): Promise<string[]> {
    const text = await this.#read();
    return text
      .split('\n')
      .flatMap((line) => /\[(?:emerg|alert|crit)\] (?:[0-9]+#[0-9]+: )?(.*)$/.exec(line)?.[1] ?? [])
      .slice(0, MAX_LINES);
  }

  async #read(): Promise<string> {
    const file = await open(this.#path, 'r').catch(() => null);
    if (file === null) return '';
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, this.#from);
      return buffer.subarray(0, bytesRead).toString();
    } finally {
      await file.close();
    }
  }
}
