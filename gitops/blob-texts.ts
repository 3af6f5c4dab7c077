import { MAX_BYTES } from './manifest/limits.ts';

const MAX_KEPT = 20_000;
/** Stands for a text that no manifest can be, however large it is: refused for its size, without being read. */
const OVERSIZED = '#'.repeat(MAX_BYTES + 1);

/** Texts by blob id, read in one `cat-file --batch`; what was read before comes from memory. */
export class BlobTexts {
  readonly #git: (args: readonly string[], input: string) => Promise<Buffer>;
  readonly #texts = new Map<string, string>();

  constructor(git: (args: readonly string[], input: string) => Promise<Buffer>) {
    this.#git = git;
  }

  /** Throws where an object is missing or corrupt: a file that can't be read is not one that isn't there. */
  async load(blobs: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const loaded = new Map<string, string>();
    for (const blob of blobs) {
      const text = this.#texts.get(blob);
      if (text !== undefined) loaded.set(blob, text);
    }
    const wanted = [...new Set(blobs)].filter((blob) => !loaded.has(blob));
    if (wanted.length === 0) return loaded;
    if (this.#texts.size + wanted.length > MAX_KEPT) this.#texts.clear();
    const sizes = (await this.#git(['cat-file', '--batch-check'], `${wanted.join('\n')}\n`)).toString();
    const oversized = new Set(
      Array.from(sizes.matchAll(/^(\S+) blob (\d+)$/gm))
        .filter(([, , size]) => Number(size) > MAX_BYTES)
        .map(([, blob]) => blob),
    );
    for (const blob of wanted) if (oversized.has(blob)) loaded.set(blob, OVERSIZED);
    const readable = wanted.filter((blob) => !oversized.has(blob));
    if (readable.length === 0) return loaded;
    const output = await this.#git(['cat-file', '--batch'], `${readable.join('\n')}\n`);
    let offset = 0;
    for (const blob of readable) {
      const newline = output.indexOf(0x0a, offset);
      const [name, type, size] = output.subarray(offset, newline).toString().split(' ');
      if (name !== blob || type !== 'blob' || size === undefined) {
        throw new UnreadableBlobError(`object ${blob} can't be read`);
      }
      const start = newline + 1;
      const text = output.subarray(start, start + Number(size)).toString();
      this.#texts.set(blob, text);
      loaded.set(blob, text);
      offset = start + Number(size) + 1;
    }
    return loaded;
  }
}

/** git has no such object, or only a part of it. */
export class UnreadableBlobError extends Error {
  override name = 'UnreadableBlobError';
}
