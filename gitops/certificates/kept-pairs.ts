import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { syncDirectory, writeDurably } from '../base/durable.ts';

/** PEM texts: the certificate with its chain, and its private key. */
export interface Pair {
  readonly chain: string;
  readonly key: string;
}

/** `<stem>@<hash of the pair>.pem`; no host name holds an `@`. */
const COPY = /^([^@]+)@[0-9a-f]{16}\.pem$/;

/**
 * Copies of an operator's pairs as they were when they were found good, each in one file with its key, for its owner's
 * eyes only. None ever becomes another: what a proxy was told of stays what it was, whatever becomes of the operator's.
 */
export class KeptPairs {
  readonly #directory: string;
  /** The newest last. */
  #paths: readonly string[] = [];
  #last: Promise<unknown> = Promise.resolve();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Before anything else: finds what earlier processes kept, and clears away what they didn't finish writing. */
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

  /** Where the copy of this pair is, or would be. */
  pathOf(stem: string, { chain, key }: Pair): string {
    const hash = createHash('sha256').update(chain).update('\0').update(key).digest('hex').slice(0, 16);
    return join(this.#directory, `${stem}@${hash}.pem`);
  }

  async has(path: string): Promise<boolean> {
    return await access(path).then(
      () => true,
      () => false,
    );
  }

  /** Resolves when the copy is on disk; one that was spoilt there is made anew. */
  async keep(path: string, { chain, key }: Pair): Promise<void> {
    const text = `${key.trim()}\n${chain.trim()}\n`;
    await this.#inTurn(async () => {
      if ((await readFile(path, 'utf8').catch(() => null)) === text) return;
      await writeDurably(path, text);
      this.#paths = [...this.#paths.filter((other) => other !== path), path];
    });
  }

  /** The newest copy of one of the stems that `judge` takes, with what it answers; `null`: there is none. */
  async newest<T>(
    stems: readonly string[],
    judge: (pem: string) => T | null,
  ): Promise<{ path: string; judged: T } | null> {
    for (const path of this.#paths.toReversed()) {
      if (!stems.includes(stemOf(path))) continue;
      const pem = await readFile(path, 'utf8').catch(() => null);
      const judged = pem === null ? null : judge(pem);
      if (judged !== null) return { path, judged };
    }
    return null;
  }

  /** All but the copies `needed`, and those of whole `stems`: asked at the very moment that the others go. */
  async keepOnly(
    needed: () => { readonly paths: ReadonlySet<string>; readonly stems: ReadonlySet<string> },
  ): Promise<void> {
    await this.#inTurn(async () => {
      const { paths, stems } = needed();
      const others = this.#paths.filter((path) => !paths.has(path) && !stems.has(stemOf(path)));
      if (others.length === 0) return;
      this.#paths = this.#paths.filter((path) => !others.includes(path));
      for (const path of others) await rm(path, { force: true });
      await syncDirectory(this.#directory);
    });
  }

  /** One after the other: a copy that goes must not take the same one with it that is just being made. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    await done;
  }
}

function stemOf(path: string): string {
  return COPY.exec(basename(path))?.[1] ?? '';
}
