import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../../../base/durable.ts';

/** The pods that a name leads to. */
export interface NameTarget {
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
  readonly role: 'origin' | 'preview';
}

const NAMES = 'names';
const TARGETS = 'targets';

/**
 * The table of names that lead to pods: a folder with a symbolic link for each name. nginx reads the link at each
 * request (`$realpath_root`), so a change of a name needs no reload. Each link is replaced atomically. The table is on
 * the disk, so it survives a restart.
 */
export class NameTable {
  readonly #directory: string;
  #written: ReadonlyMap<string, string> | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The folder with the links. */
  get folder(): string {
    return join(this.#directory, NAMES);
  }

  /** Creates the folders, which nginx needs even if they are empty. */
  async prepare(): Promise<void> {
    for (const name of [NAMES, TARGETS])
      await mkdir(join(this.#directory, name), { recursive: true, mode: 0o711 });
  }

  /** Makes the table have exactly these names. Resolves to true if anything changed. */
  async write(targets: ReadonlyMap<string, NameTarget>): Promise<boolean> {
    this.#written ??= await this.#read();
    const wanted = new Map([...targets].map(([name, target]) => [name, pathOf(target)]));
    const changed = [...wanted].filter(([name, path]) => this.#written?.get(name) !== path);
    const gone = [...this.#written.keys()].filter((name) => !wanted.has(name));
    if (changed.length === 0 && gone.length === 0) return false;
    // If this write fails halfway, the next attempt reads the disk.
    this.#written = null;
    for (const [name, path] of changed) await this.#link(name, path);
    for (const name of gone) await rm(join(this.folder, name), { force: true });
    await syncDirectory(this.folder);
    this.#written = wanted;
    return true;
  }

  async #link(name: string, path: string): Promise<void> {
    // nginx resolves the link, so what it points to must exist.
    await mkdir(join(this.#directory, path), { recursive: true, mode: 0o711 });
    // No request can have this name: a host name contains no @.
    const temporary = join(this.folder, '@next');
    await rm(temporary, { force: true });
    await symlink(join('..', path), temporary);
    await rename(temporary, join(this.folder, name));
  }

  async #read(): Promise<ReadonlyMap<string, string>> {
    const names = (await readdir(this.folder)).filter((name) => name !== '@next');
    const links = await Promise.all(
      names.map(async (name) => [name, await readlink(join(this.folder, name))] as const),
    );
    return new Map(links.map(([name, link]) => [name, link.replace(/^\.\.\//, '')]));
  }
}

/** The path in the form that nginx's map `$tagyard_target` reads. */
function pathOf({ namespace, service, port, role }: NameTarget): string {
  return join(TARGETS, namespace, service, String(port), role);
}
