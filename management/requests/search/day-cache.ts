import { appendFile, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const cachedFile = z.object({
  name: z.string().regex(/^[0-9a-f-]{36}\.parquet$/),
  /** The hour (UTC) of its rows: 0 to 23. */
  hour: z.number().int().min(0).max(23),
  rows: z.number().int(),
  bytes: z.number().int(),
});
export type CachedFile = z.output<typeof cachedFile>;

/** One line of the journal: objects that were read, the files made from them, and the files that they replace. */
const entry = z.object({
  objects: z.array(z.tuple([z.string(), z.number()])).default([]),
  files: z.array(cachedFile).default([]),
  replaced: z.array(z.string()).default([]),
});
type Entry = z.input<typeof entry>;

const JOURNAL = 'journal.ndjson';

/**
 * The Parquet files of one day in a folder of its own, with a journal of what they are made from. All of it can be made
 * again from the bucket: where the journal or a file is damaged, the day is empty, and is filled again.
 */
export class DayCache {
  readonly dir: string;
  /** Sizes of the objects that were read, by key. */
  readonly objects = new Map<string, number>();
  readonly #files = new Map<string, CachedFile>();
  /** Files that were replaced: a query may still read them. */
  #replaced: string[] = [];

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async open(dir: string): Promise<DayCache> {
    const day = new DayCache(dir);
    await mkdir(dir, { recursive: true });
    if (!(await day.#load())) await day.clear();
    return day;
  }

  get files(): readonly CachedFile[] {
    return [...this.#files.values()];
  }

  pathOf({ name }: Pick<CachedFile, 'name'>): string {
    return join(this.dir, name);
  }

  /** Records what was read and written. The files are part of the day from then on. */
  async record(change: Entry): Promise<void> {
    const line = `${JSON.stringify(change)}\n`;
    await appendFile(join(this.dir, JOURNAL), line);
    this.#apply(entry.parse(change));
  }

  /**
   * Deletes the replaced files. Called when the next fill or erasure of the day begins: by then, the queries that may
   * read them have ended.
   */
  async sweep(): Promise<void> {
    const names = this.#replaced;
    this.#replaced = [];
    for (const name of names) await rm(join(this.dir, name), { force: true });
  }

  /** Empties the day. Its folder stays, because an erasure works on all days that have one. */
  async clear(): Promise<void> {
    await mkdir(this.dir, { recursive: true });
    // First: without the journal, a start deletes all files that are left. If this fails, nothing has changed yet.
    await rm(join(this.dir, JOURNAL), { force: true });
    this.objects.clear();
    this.#files.clear();
    this.#replaced = [];
    for (const name of await readdir(this.dir)) {
      await rm(join(this.dir, name), { recursive: true, force: true });
    }
  }

  #apply({ objects, files, replaced }: z.output<typeof entry>): void {
    for (const [key, size] of objects) this.objects.set(key, size);
    for (const file of files) this.#files.set(file.name, file);
    for (const name of replaced) if (this.#files.delete(name)) this.#replaced.push(name);
  }

  /** `false`: the journal is damaged, its last line was cut off, or a file has another size. */
  async #load(): Promise<boolean> {
    const journal = await readFile(join(this.dir, JOURNAL), 'utf8').catch(() => '');
    const lines = journal.split('\n');
    // If the last line was cut off, the next entry would be appended to it.
    if (lines.pop() !== '') return false;
    try {
      for (const line of lines) this.#apply(entry.parse(JSON.parse(line)));
    } catch {
      return false;
    }
    for (const file of this.files) {
      const size = await stat(this.pathOf(file)).then(
        (found) => found.size,
        () => -1,
      );
      if (size !== file.bytes) return false;
    }
    const known = new Set([JOURNAL, ...this.#files.keys()]);
    for (const name of await readdir(this.dir)) {
      if (!known.has(name)) await rm(join(this.dir, name), { recursive: true, force: true });
    }
    this.#replaced = [];
    return true;
  }
}

/** Deletes folders of other releases than `version` in `dir`, and all but the newest `most` days of this one. */
export async function forgetOldDays(dir: string, version: string, most: number): Promise<void> {
  const root = join(dir, version);
  await mkdir(root, { recursive: true });
  const others = (await readdir(dir)).filter((name) => /^v\d+$/.test(name) && name !== version);
  const days = (await readdir(root)).sort().reverse();
  const old = [...others, ...days.slice(most).map((name) => join(version, name))];
  for (const name of old) await rm(join(dir, name), { recursive: true, force: true });
}
