import { link, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { syncDirectory, syncFile, writeDurably } from '../../../../base/durable.ts';
import { RetryableError } from '../../../../base/errors.ts';
import { contentHash } from '../../../../base/ownership.ts';
import {
  absent,
  type Files,
  type FixedFiles,
  formatRecord,
  type Generation,
  MAIN,
  RECORD,
  readGeneration,
  type Tree,
  VERSION,
} from './generation.ts';

const CURRENT = 'current';
const CANDIDATE = 'candidate';
/** Folder for files that Tagyard didn't write and that nginx refuses. */
const ASIDE = 'refused';
const OWN: ReadonlySet<string> = new Set([
  ...[CURRENT, `${CURRENT}.tmp`, CANDIDATE, ASIDE, 'logs', 'temp', 'nginx.pid'],
  ...['ports.json', 'ports.json.tmp'],
]);
const OWN_IN_TREE: ReadonlySet<string> = new Set(
  ['nginx.conf', 'version', RECORD, 'http', 'sites', MAIN, VERSION].map((name) => join(CURRENT, name)),
);
const GENERATION = /^sites\.([0-9]+)$/;
/** The current one and two older ones, for inspection and to restore lost files. */
const KEPT = 3;

interface GenerationsDeps {
  readonly fixed: FixedFiles;
  /** The version that nginx serves now; `null`: none, or it is unknown. */
  servedVersion(): Promise<string | null>;
}

/**
 * Directories `sites.<n>` under the prefix, each with a complete tree, and the symbolic link `current` to the one that
 * nginx reads. Files are immutable, so unchanged ones are hard links to the previous generation. The trees are a cache:
 * what the current one has lost is copied from older ones or written anew from git.
 */
export class Generations {
  readonly #prefix: string;
  readonly #deps: GenerationsDeps;

  constructor(prefix: string, deps: GenerationsDeps) {
    this.#prefix = prefix;
    this.#deps = deps;
  }

  /** Path of the main file relative to the prefix, as nginx's option `-c` takes it. */
  static readonly currentConfig = join(CURRENT, 'nginx.conf');
  static readonly candidateConfig = join(CANDIDATE, 'nginx.conf');

  /**
   * The current generation, with lost files taken from older ones. If the link or the directory is lost: the generation
   * that nginx serves, else the newest one. `null`: there is none. Throws `RetryableError` if something exists but
   * can't be read.
   */
  async current(): Promise<Generation | null> {
    try {
      const name = await readlink(join(this.#prefix, CURRENT)).catch(noLink);
      const linked = name !== null && GENERATION.test(name) ? await this.#read(name) : null;
      if (linked?.isSound) return linked;
      const others = (await this.#all()).filter((one) => one.name !== linked?.name && one.version !== '');
      if (linked !== null && linked.version !== '') return complete(linked, others);
      const served = await this.#deps.servedVersion();
      const left = others.find(({ version }) => version === served) ?? others[0];
      return left === undefined ? linked : { ...left, isSound: false };
    } catch (cause) {
      throw new RetryableError('the proxy’s current generation can’t be read', { cause });
    }
  }

  /** The kept generation of this version; `null` if there is none. */
  async ofVersion(version: string): Promise<Generation | null> {
    return (await this.#all()).find((one) => one.version === version) ?? null;
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
      writeFile(join(directory, 'nginx.conf'), this.#deps.fixed.skeleton, { mode: 0o600 }),
      writeFile(join(directory, MAIN), main, { mode: 0o600 }),
      writeFile(join(directory, 'version'), version),
      writeFile(join(directory, VERSION), this.#deps.fixed.version(version)),
      writeFile(join(directory, RECORD), formatRecord(version, { main, files }), { mode: 0o600 }),
      ...[...files].map(async ([name, text]) => {
        const path = join(directory, 'sites', name);
        if (isKept(base, name, text)) await link(join(this.#prefix, base.name, 'sites', name), path);
        else await writeFile(path, text, { mode: 0o600 });
      }),
    ]);
  }

  /** Syncs the tested candidate to disk, names it by its number, and makes it the current generation. */
  async promote({ main, files }: Tree, base: Generation | null): Promise<Generation> {
    const staged = join(this.#prefix, CANDIDATE);
    const version = await readFile(join(staged, 'version'), 'utf8');
    const fresh = [...files].filter(([name, text]) => !isKept(base, name, text));
    const written = [
      'nginx.conf',
      'version',
      MAIN,
      VERSION,
      RECORD,
      ...fresh.map(([name]) => join('sites', name)),
    ];
    for (const name of written) await syncFile(join(staged, name));
    for (const name of ['http', 'sites']) await syncDirectory(join(staged, name));
    await syncDirectory(staged);
    const name = `sites.${version.split('-')[0]}`;
    await rename(staged, join(this.#prefix, name));
    await this.swapTo(name);
    return { name, version, main, mainHash: contentHash(main), files, missing: [], isSound: true };
  }

  /** Makes a generation the current one, atomically. */
  async swapTo(name: string): Promise<void> {
    const temporary = join(this.#prefix, `${CURRENT}.tmp`);
    await rm(temporary, { force: true });
    await symlink(name, temporary);
    await rename(temporary, join(this.#prefix, CURRENT)).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EISDIR' && error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      // A directory is in the link's place. Tagyard didn't make it, so it is renamed, not removed.
      await rename(join(this.#prefix, CURRENT), join(this.#prefix, `${CURRENT}.${Date.now()}`));
      await rename(temporary, join(this.#prefix, CURRENT));
    });
    await syncDirectory(this.#prefix);
  }

  /** Saves files that Tagyard didn't write and that the next generation won't contain. */
  async setAside(files: Files): Promise<void> {
    if (files.size === 0) return;
    await mkdir(join(this.#prefix, ASIDE), { recursive: true, mode: 0o700 });
    for (const [name, text] of files) await writeDurably(join(this.#prefix, ASIDE, name), text);
  }

  /** The names of the current generation's vhost files, without their texts; empty if there is no generation. */
  async vhostNames(): Promise<string[]> {
    const names = await readdir(join(this.#prefix, CURRENT, 'sites')).catch(absent);
    return (names ?? []).filter((name) => name.endsWith('.conf'));
  }

  /** Paths, relative to the prefix, of files that Tagyard didn't write. `isOurs` judges the text of a vhost's file. */
  async strangers(isOurs: (text: string) => boolean): Promise<string[]> {
    const current = await readlink(join(this.#prefix, CURRENT)).catch(noLink);
    const inTree = async (...path: string[]) => {
      if (current === null) return [];
      const names = await readdir(join(this.#prefix, current, ...path)).catch(absent);
      return (names ?? []).map((name) => join(CURRENT, ...path, name));
    };
    const vhosts = current === null ? null : await this.#read(current);
    const isVhost = (path: string) => {
      const text = vhosts?.files.get(basename(path));
      return text !== undefined && isOurs(text);
    };
    const aside = (await readdir(join(this.#prefix, ASIDE)).catch(absent)) ?? [];
    return [
      ...(await readdir(this.#prefix)).filter((name) => !OWN.has(name) && !GENERATION.test(name)),
      ...(await inTree()).filter((path) => !OWN_IN_TREE.has(path)),
      ...(await inTree('http')).filter((path) => !OWN_IN_TREE.has(path)),
      ...(await inTree('sites')).filter((path) => !isVhost(path)),
      ...aside.map((name) => join(ASIDE, name)),
    ].sort();
  }

  async prune(current: string): Promise<void> {
    const old = (await this.#numbers()).filter((number) => `sites.${number}` !== current);
    for (const number of old.slice(KEPT - 1)) {
      await rm(join(this.#prefix, `sites.${number}`), { recursive: true, force: true });
    }
  }

  #read(name: string): Promise<Generation | null> {
    return readGeneration(this.#prefix, name, this.#deps.fixed);
  }

  /** Newest first. */
  async #all(): Promise<Generation[]> {
    const found = await Promise.all((await this.#numbers()).map((number) => this.#read(`sites.${number}`)));
    return found.filter((one) => one !== null);
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

/** True if the base's directory has the file with this text. Then it can be hard-linked, and is on disk already. */
function isKept(base: Generation | null, name: string, text: string): base is Generation {
  return base !== null && base.files.get(name) === text && !base.missing.includes(name);
}

/** Adds lost files from other generations that still have them. */
function complete(found: Generation, others: readonly Generation[]): Generation {
  const files = new Map(found.files);
  for (const name of found.missing) {
    const text = others.map((one) => one.files.get(name)).find((one) => one !== undefined);
    if (text !== undefined) files.set(name, text);
  }
  return { ...found, files: new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))) };
}

/** A handler for `catch`. Returns `null` if there is no link, also if something else is in its place. */
function noLink(error: NodeJS.ErrnoException): null {
  if (error.code === 'EINVAL') return null;
  return absent(error);
}
