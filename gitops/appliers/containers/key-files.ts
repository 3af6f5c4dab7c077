import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { syncDirectory } from '../../../base/durable.ts';
import { TerminalError } from '../../../base/errors.ts';
import type { Secret } from '../../../sites/manifest/secrets.ts';

const ENDING = '.json';
/** A file that is being written, or that a crash left half written. */
const UNFINISHED = `${ENDING}.tmp`;

/** The user that reads a file: the container's, or with `null` this process's own. */
type Reader = { readonly uid: number; readonly gid: number } | null;

/** Files with the keys of service accounts: one for each container, readable by the container's user only. */
export class KeyFiles {
  readonly #directory: string;
  readonly #reader: Reader;

  constructor(directory: string, reader: Reader) {
    this.#directory = resolve(directory);
    this.#reader = reader;
  }

  pathOf(name: string): string {
    return join(this.#directory, `${name}${ENDING}`);
  }

  /** Writes the file of a container and returns its path. The key is never in a file that another user can read. */
  async write(name: string, key: Secret): Promise<string> {
    const path = this.pathOf(name);
    const temporary = join(this.#directory, `${name}${UNFINISHED}`);
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await rm(temporary, { force: true });
    const file = await open(temporary, 'wx', 0o400);
    try {
      if (this.#reader !== null) await file.chown(this.#reader.uid, this.#reader.gid);
      await file.writeFile(key.reveal());
      await file.sync();
    } catch (cause) {
      await rm(temporary, { force: true });
      if (!isDenied(cause)) throw cause;
      const message = `the key file can’t be given to the container’s user (${this.#reader?.uid}): run the provisioner as root or with CAP_CHOWN, or remove serviceAccount from the manifest`;
      throw new TerminalError(message, { cause });
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await syncDirectory(this.#directory);
    return path;
  }

  async remove(name: string): Promise<void> {
    await rm(this.pathOf(name), { force: true });
    await rm(join(this.#directory, `${name}${UNFINISHED}`), { force: true });
  }

  /** The names of the containers that have a file, finished or not. */
  async names(): Promise<string[]> {
    const files = await readdir(this.#directory).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    });
    const names = files.flatMap((file) => {
      const ending = [ENDING, UNFINISHED].find((one) => file.endsWith(one));
      return ending === undefined ? [] : [file.slice(0, -ending.length)];
    });
    return [...new Set(names)];
  }
}

function isDenied(error: unknown): boolean {
  return hasCode(error, 'EPERM') || hasCode(error, 'EACCES');
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
