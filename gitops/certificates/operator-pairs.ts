import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pair } from './kept-pairs.ts';

/** `null`: there is neither file; `fault`: one of them is missing or can't be read. */
export type FoundPair = { readonly pair: Pair } | { readonly fault: string } | null;

/** File names without their endings, in the order in which they are looked for: the name's own, its wildcard's. */
export function stemsOf(host: string): readonly string[] {
  return [host, `_.${host.split('.').slice(1).join('.')}`];
}

/** The pairs in an operator's folder, as they are now: `<stem>.pem` and `<stem>.key`. */
export class OperatorPairs {
  readonly directory: string;
  /** A thousand names that share a wildcard are looked at together: one of them reads it for all. */
  readonly #reading = new Map<string, Promise<FoundPair>>();

  constructor(directory: string) {
    this.directory = directory;
  }

  read(stem: string): Promise<FoundPair> {
    const under = this.#reading.get(stem);
    if (under !== undefined) return under;
    const reading = readPair(join(this.directory, stem)).finally(() => this.#reading.delete(stem));
    this.#reading.set(stem, reading);
    return reading;
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
