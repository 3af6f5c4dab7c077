import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { syncDirectory, writeDurably } from '../../base/durable.ts';
import { fileStem } from '../../base/file-stem.ts';
import { limit } from '../../base/limit.ts';

/** PEM texts: the certificate with its chain, and its private key. */
export interface Pair {
  readonly chain: string;
  readonly key: string;
}

/** `<stem>@<hash of the pair>.pem`; a host name contains no `@`. */
const COPY = /^([^@]+)@[0-9a-f]{16}\.pem$/;

/**
 * Copies of an operator's valid pairs, one file for each pair, readable by the file's owner only. A copy never changes,
 * so the files that a proxy uses stay valid even if the operator's files change or disappear.
 */
export class KeptPairs {
  readonly #directory: string;
  /** Prevents the removal of a copy while it is being written. */
  readonly #exclusive = limit(1);
  /** The newest last. */
  #paths: readonly string[] = [];

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Call it first. Finds the copies of earlier processes and removes files that they didn't finish writing. */
  async prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const found: { path: string; at: number }[] = [];
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      if (COPY.test(name)) found.push({ path, at: (await stat(path)).mtimeMs });
      else if (name.endsWith('.tmp')) await rm(path, { force: true });
    }
    this.#paths = found.sort((a, b) => a.at - b.at).map(({ path }) => path);
  }

  /** The path of this pair's copy, which may not exist yet. */
  pathOf(stem: string, { chain, key }: Pair): string {
    const hash = createHash('sha256').update(chain).update('\0').update(key).digest('hex').slice(0, 16);
    return join(this.#directory, `${fileStem(stem)}@${hash}.pem`);
  }

  async has(path: string): Promise<boolean> {
    return await access(path).then(
      () => true,
      () => false,
    );
  }

  /** Resolves when the copy is on disk. Replaces a damaged copy. */
  async keep(path: string, { chain, key }: Pair): Promise<void> {
    const text = `${key.trim()}\n${chain.trim()}\n`;
    await this.#exclusive(async () => {
      if ((await readFile(path, 'utf8').catch(() => null)) === text) return;
      await writeDurably(path, text);
      this.#paths = [...this.#paths.filter((other) => other !== path), path];
    });
  }

  /** The newest copy of these stems for which `check` returns something, with that result; `null` if there is none. */
  async newest<T>(
    stems: readonly string[],
    check: (pem: string) => T | null,
  ): Promise<{ path: string; result: T } | null> {
    for (const path of this.#paths.toReversed()) {
      if (!stems.some((stem) => fileStem(stem) === stemOf(path))) continue;
      const pem = await readFile(path, 'utf8').catch(() => null);
      const result = pem === null ? null : check(pem);
      if (result !== null) return { path, result };
    }
    return null;
  }

  /** Removes all copies except the paths and stems that `needed` returns. Calls `needed` right before the removal. */
  async keepOnly(
    needed: () => { readonly paths: ReadonlySet<string>; readonly stems: ReadonlySet<string> },
  ): Promise<void> {
    await this.#exclusive(async () => {
      const { paths, stems } = needed();
      const kept = new Set([...stems].map(fileStem));
      const others = this.#paths.filter((path) => !paths.has(path) && !kept.has(stemOf(path)));
      if (others.length === 0) return;
      this.#paths = this.#paths.filter((path) => !others.includes(path));
      for (const path of others) await rm(path, { force: true });
      await syncDirectory(this.#directory);
    });
  }
}

function stemOf(path: string): string {
  return COPY.exec(basename(path))?.[1] ?? '';
}
