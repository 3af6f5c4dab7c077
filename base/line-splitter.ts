/** A line of a stream, without its end; `null`: it was longer than the limit, and nothing of it was kept. */
export type SplitLine = string | null;

/** Splits a stream of bytes into lines, and keeps at most `limit` octets of a line that has not ended. */
export class LineSplitter {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  /** `limit`: the most octets that a line may have. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The lines that end in the chunk. */
  push(chunk: Buffer): SplitLine[] {
    const lines: SplitLine[] = [];
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      this.#keep(chunk.subarray(from, end));
      lines.push(this.#take());
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  /** The last line, if the stream doesn't end with a line break. */
  end(): SplitLine[] {
    return this.#size === 0 ? [] : [this.#take()];
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#limit) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }

  #take(): SplitLine {
    const isKept = this.#size <= this.#limit;
    const [only, ...more] = this.#parts;
    this.#parts = [];
    this.#size = 0;
    if (!isKept) return null;
    if (only === undefined) return '';
    const line = (more.length === 0 ? only : Buffer.concat([only, ...more])).toString();
    return line.endsWith('\r') ? line.slice(0, -1) : line;
  }
}
