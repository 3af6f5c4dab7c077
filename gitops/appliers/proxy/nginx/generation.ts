import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { contentHash } from '../../../../base/ownership.ts';

/** Texts by file name, in the order in which nginx's `include` reads them. */
export type Files = ReadonlyMap<string, string>;

/** A whole configuration. Certificates are the only files outside it that it refers to. */
export interface Tree {
  readonly main: string;
  readonly files: Files;
}

export interface Generation extends Tree {
  /** The directory's name. */
  readonly name: string;
  /** What the version endpoint answers while nginx serves this generation; empty if no file states it any more. */
  readonly version: string;
  /** Hash of `main` as it was written. */
  readonly mainHash: string;
  /** Names of vhosts' files that were written and are gone now. */
  readonly missing: readonly string[];
  /** True if no file is gone, and every file other than the vhosts' is as it was written. */
  readonly isSound: boolean;
}

export const MAIN = join('http', 'tagyard.conf');
export const VERSION = join('http', 'version.conf');
export const RECORD = 'record.json';

/** What a generation consists of, as it was written. */
const recordSchema = z.strictObject({
  version: z.string(),
  /** Hash of `http/tagyard.conf`. */
  main: z.string(),
  /** The files in `sites/`. */
  names: z.array(z.string()),
});

/** The text of `record.json`. */
export function formatRecord(version: string, { main, files }: Tree): string {
  return JSON.stringify({ version, main: contentHash(main), names: [...files.keys()] });
}

/** The files that are the same in all generations, or follow from the version alone. */
export interface FixedFiles {
  /** `nginx.conf`. */
  readonly skeleton: string;
  /** Renders `http/version.conf`. */
  readonly version: (version: string) => string;
}

/** Reads a generation's directory; `null` if there is none. Throws if something in it can't be read. */
export async function readGeneration(
  prefix: string,
  name: string,
  fixed: FixedFiles,
): Promise<Generation | null> {
  const directory = join(prefix, name);
  if ((await readdir(directory).catch(absent)) === null) return null;
  const text = (file: string) => readFile(join(directory, file), 'utf8').catch(absent);
  const entries = (await readdir(join(directory, 'sites'), { withFileTypes: true }).catch(absent)) ?? [];
  const names = entries.flatMap((entry) =>
    entry.isFile() && entry.name.endsWith('.conf') ? [entry.name] : [],
  );
  const texts = await Promise.all(names.sort().map((file) => text(join('sites', file))));
  const found = names.map((file, index) => [file, texts[index] ?? null] as const);
  const files = new Map(found.filter((pair): pair is readonly [string, string] => pair[1] !== null));

  const record = parseRecord(await text(RECORD));
  const stated = await text('version');
  const version = record?.version ?? stated ?? '';
  const main = (await text(MAIN)) ?? '';
  const mainHash = record?.main ?? contentHash(main);
  const missing = record?.names.filter((file) => !files.has(file)) ?? [];
  const isSound =
    record !== null &&
    missing.length === 0 &&
    stated === version &&
    mainHash === contentHash(main) &&
    (await text('nginx.conf')) === fixed.skeleton &&
    (await text(VERSION)) === fixed.version(version);
  return { name, version, main, mainHash, files, missing, isSound };
}

function parseRecord(text: string | null): z.output<typeof recordSchema> | null {
  try {
    return recordSchema.parse(JSON.parse(text ?? ''));
  } catch {
    return null;
  }
}

/** A handler for `catch`. Returns `null` if the file doesn't exist; throws every other error. */
export function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
