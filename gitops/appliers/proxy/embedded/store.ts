import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { syncDirectory, writeDurably } from '../../../../base/durable.ts';
import { RetryableError } from '../../../../base/errors.ts';
import { contentHash } from '../../../../base/ownership.ts';
import { type ProxySpec, proxySpecSchema } from '../desired.ts';
import { fileNameOf, keyOf } from '../file-name.ts';

const ENDING = '.json';

const recordSchema = z.strictObject({ mark: z.string(), spec: proxySpecSchema, hash: z.string() });

/** What was applied for a key. `spec` is `null` if the file was changed since. */
interface StoredVhosts {
  readonly key: string;
  readonly mark: string | undefined;
  readonly spec: ProxySpec | null;
  readonly path: string;
}

/** Stores one JSON file per key. */
export class VhostStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
  }

  /** Throws `RetryableError` if the directory or a file can't be read. */
  async all(): Promise<StoredVhosts[]> {
    try {
      const names = (await readdir(this.#directory)).filter((name) => name.endsWith(ENDING)).sort();
      return await Promise.all(names.map((name) => this.#read(keyOf(name), join(this.#directory, name))));
    } catch (cause) {
      throw new RetryableError('the proxy’s vhosts can’t be read', { cause });
    }
  }

  async find(key: string): Promise<StoredVhosts | undefined> {
    try {
      return await this.#read(key, this.#pathOf(key));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async write(key: string, mark: string, spec: ProxySpec): Promise<void> {
    const record = { mark, spec, hash: contentHash(spec) };
    await writeDurably(this.#pathOf(key), `${JSON.stringify(record, null, 2)}\n`);
  }

  async remove(key: string): Promise<void> {
    await rm(this.#pathOf(key), { force: true });
    await syncDirectory(this.#directory);
  }

  #pathOf(key: string): string {
    return join(this.#directory, fileNameOf(key, ENDING));
  }

  async #read(key: string, path: string): Promise<StoredVhosts> {
    const text = await readFile(path, 'utf8');
    const { mark, spec } = parseRecord(text);
    return { key, mark, spec, path };
  }
}

/** A file that was edited or truncated has no spec; its mark is kept if it is readable. */
function parseRecord(text: string): { mark: string | undefined; spec: ProxySpec | null } {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { mark: undefined, spec: null };
  }
  const whole = recordSchema.safeParse(json);
  if (whole.success && whole.data.hash === contentHash(whole.data.spec)) return whole.data;
  const marked = z.object({ mark: z.string() }).safeParse(json);
  return { mark: marked.data?.mark, spec: null };
}
