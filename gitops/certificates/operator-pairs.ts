import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pair } from './kept-pairs.ts';

/** `null` if neither file exists; `fault` if one of them is missing or can't be read. */
type FoundPair = { readonly pair: Pair } | { readonly fault: string } | null;

/** File names without their endings, in order of preference: that of the name itself, then that of its wildcard. */
export function stemsOf(host: string): readonly string[] {
  return [host, `_.${host.split('.').slice(1).join('.')}`];
}

/** Reads the pairs in an operator's folder: `<stem>.pem` and `<stem>.key`. */
export class OperatorPairs {
  readonly directory: string;
  /** Reads in progress: a thousand names with one wildcard are checked together and need one read. */
  readonly #reads = new Map<string, Promise<FoundPair>>();

  constructor(directory: string) {
    this.directory = directory;
  }

  read(stem: string): Promise<FoundPair> {
    const existing = this.#reads.get(stem);
    if (existing !== undefined) return existing;
    const read = readPair(join(this.directory, stem)).finally(() => this.#reads.delete(stem));
    this.#reads.set(stem, read);
    return read;
  }
}

async function readPair(path: string): Promise<FoundPair> {
  const [chain, key] = await Promise.all([readText(`${path}.pem`), readText(`${path}.key`)]);
  if ('text' in chain && 'text' in key) return { pair: { chain: chain.text, key: key.text } };
  const faults = [chain, key].flatMap((file) => ('fault' in file ? [file] : []));
  if (faults.length === 2 && faults.every(({ isMissing }) => isMissing)) return null;
  return { fault: faults.map(({ fault }) => fault).join(', ') };
}

async function readText(path: string): Promise<{ text: string } | { fault: string; isMissing: boolean }> {
  try {
    return { text: await readFile(path, 'utf8') };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const isMissing = code === 'ENOENT';
    return { fault: isMissing ? `${path} is missing` : `${path} can’t be read (${code})`, isMissing };
  }
}
