import { link, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory, syncFile } from '../../../base/durable.ts';
import { RetryableError } from '../../../base/errors.ts';
import { contentHash } from '../../../base/ownership.ts';

/** Texts by file name, in the order in which nginx's `include` reads them. */
export type Files = ReadonlyMap<string, string>;

/** A whole configuration; the only files that it refers to outside are certificates. */
interface Tree {
  readonly main: string;
  readonly files: Files;
}

export interface Generation extends Tree {
  /** The directory's name. */
  readonly name: string;
  /** The answer of the version endpoint while nginx serves it. */
  readonly version: string;
}

const CURRENT = 'current';
const CANDIDATE = 'candidate';
const MAIN = join('http', 'tagyard.conf');
const VERSION = join('http', 'version.conf');
const GENERATION = /^sites\.([0-9]+)$/;
/** The current one and two older ones, for inspection. */
const KEPT = 3;

/**
 * Directories `sites.<n>` under the prefix, each with a complete tree, and the symbolic link `current` to the one that
 * nginx reads. Files are immutable, so unchanged ones are hard links to the previous generation.
 */
export class Generations {
  readonly #prefix: string;
  /** The text of `nginx.conf`, the same in all trees. */
  readonly #skeleton: string;
  /** Renders `http/version.conf`. */
  readonly #endpoint: (version: string) => string;

  constructor(prefix: string, fixed: { skeleton: string; version: (version: string) => string }) {
    this.#prefix = prefix;
    this.#skeleton = fixed.skeleton;
    this.#endpoint = fixed.version;
  }

  /** Relative to the prefix, as nginx takes it. */
  static readonly currentConfig = join(CURRENT, 'nginx.conf');
  static readonly candidateConfig = join(CANDIDATE, 'nginx.conf');

  /** `null` before the first one. Throws `RetryableError` if it exists and can't be read. */
  async current(): Promise<Generation | null> {
    try {
      const name = await readlink(join(this.#prefix, CURRENT)).catch(absent);
      if (name === null) return null;
      const directory = join(this.#prefix, name);
      const names = (await readdir(join(directory, 'sites'))).filter((file) => file.endsWith('.conf')).sort();
      const texts = await Promise.all(names.map((file) => readFile(join(directory, 'sites', file), 'utf8')));
      // A tree of an earlier release has no such file, and so differs from the desired one.
      const main = (await readFile(join(directory, MAIN), 'utf8').catch(absent)) ?? '';
      const files = new Map(names.map((file, index) => [file, texts[index] ?? '']));
      return { name, main, files, version: await readFile(join(directory, 'version'), 'utf8') };
    } catch (cause) {
      throw new RetryableError('the proxy’s current generation can’t be read', { cause });
    }
  }

  /** Writes the candidate without syncing it to disk. Files that are equal in `base` are hard links. */
  async stage({ main, files }: Tree, base: Generation | null): Promise<void> {
    const directory = join(this.#prefix, CANDIDATE);
    await rm(directory, { recursive: true, force: true });
    for (const name of ['http', 'sites']) {
      await mkdir(join(directory, name), { recursive: true, mode: 0o700 });
    }
    const version = `${1 + (await this.#newest())}-${contentHash([main, ...files])}`;
    await Promise.all([
      writeFile(join(directory, 'nginx.conf'), this.#skeleton, { mode: 0o600 }),
      writeFile(join(directory, MAIN), main, { mode: 0o600 }),
      writeFile(join(directory, 'version'), version),
      writeFile(join(directory, VERSION), this.#endpoint(version)),
      ...[...files].map(async ([name, text]) => {
        const path = join(directory, 'sites', name);
        const same = base !== null && base.files.get(name) === text;
        if (same) await link(join(this.#prefix, base.name, 'sites', name), path);
        else await writeFile(path, text, { mode: 0o600 });
      }),
    ]);
  }

  /** Syncs the tested candidate to disk, names it by its number, and makes it the current generation. */
  async promote({ main, files }: Tree, base: Generation | null): Promise<Generation> {
    const staged = join(this.#prefix, CANDIDATE);
    const version = await readFile(join(staged, 'version'), 'utf8');
    const fresh = [...files].filter(([name, text]) => base?.files.get(name) !== text);
    const written = ['nginx.conf', 'version', MAIN, VERSION, ...fresh.map(([name]) => join('sites', name))];
    for (const name of written) await syncFile(join(staged, name));
    for (const name of ['http', 'sites']) await syncDirectory(join(staged, name));
    await syncDirectory(staged);
    const name = `sites.${version.split('-')[0]}`;
    await rename(staged, join(this.#prefix, name));
    await this.swapTo(name);
    return { name, version, main, files };
  }

  /** Makes a generation the current one, atomically. */
  async swapTo(name: string): Promise<void> {
    const temporary = join(this.#prefix, `${CURRENT}.tmp`);
    await rm(temporary, { force: true });
    await symlink(name, temporary);
    await rename(temporary, join(this.#prefix, CURRENT));
    await syncDirectory(this.#prefix);
  }

  async prune(current: string): Promise<void> {
    const old = (await this.#numbers()).filter((number) => `sites.${number}` !== current);
    for (const number of old.slice(KEPT - 1)) {
      await rm(join(this.#prefix, `sites.${number}`), { recursive: true, force: true });
    }
  }

  async #newest(): Promise<number> {
    return (await this.#numbers())[0] ?? 0;
  }

  /** Newest first. */
  async #numbers(): Promise<number[]> {
    const numbers = (await readdir(this.#prefix)).flatMap((name) => {
      const match = GENERATION.exec(name);
      return match === null ? [] : [Number(match[1])];
    });
    return numbers.sort((a, b) => b - a);
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
