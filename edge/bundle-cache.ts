import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What a bundle depends on beside its inputs: how it is made, and packages' versions (these determine entry files). */
const ALWAYS = [
  'edge/bundle.ts',
  'edge/bundle-cache.ts',
  'edge/claims.ts',
  'edge/esbuild.ts',
  'package-lock.json',
  'tsconfig.json',
];

export interface Bundle {
  readonly text: string;
  /** The files that it was built from: absolute paths, or from the tree's root. */
  readonly inputs: readonly string[];
}

interface Kept {
  readonly text: string;
  /** SHA-256 by path from the tree's root. */
  readonly inputs: Readonly<Record<string, string>>;
}

/**
 * The bundle of an earlier call if none of its files has changed; otherwise `build` makes a new one, which is kept for
 * the next call. Bundles are kept in the folder of Node's compiled code (`NODE_COMPILE_CACHE`). Without that setting,
 * nothing is kept.
 */
export async function cachedBundle(
  name: string,
  build: () => Promise<Bundle>,
  { NODE_COMPILE_CACHE: folder, NODE_DISABLE_COMPILE_CACHE: off } = process.env,
): Promise<string> {
  if (!folder || off) return (await build()).text;
  // All checkouts of a user have the same folder, so the file's name says which one it is for.
  const tree = createHash('sha256').update(ROOT).digest('hex').slice(0, 16);
  const file = join(folder, 'workers', `${tree}-${name}.json`);
  const kept = await readKept(file);
  if (kept !== null && (await isCurrent(kept))) return kept.text;
  const startedAt = Date.now();
  const { text, inputs } = await build();
  const all = [...ALWAYS, ...inputs];
  const hashes = await hashesOf(all);
  // A file that was written during the build can differ from what the build read.
  if ((await newestOf(all)) < startedAt) await keep(file, { text, inputs: hashes });
  return text;
}

async function readKept(file: string): Promise<Kept | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Kept; // a file that `keep` didn't write completely isn't JSON
  } catch {
    return null;
  }
}

async function isCurrent({ inputs }: Kept): Promise<boolean> {
  const now = await hashesOf(Object.keys(inputs));
  return Object.entries(inputs).every(([path, hash]) => now[path] === hash);
}

/** A missing file has a hash of its own, because a file that appears or is removed changes the bundle. */
async function hashesOf(paths: readonly string[]): Promise<Record<string, string>> {
  const entries = paths.map(async (path) => {
    const content = await readFile(resolve(ROOT, path)).catch(unlessMissing);
    return [path, content === null ? 'missing' : createHash('sha256').update(content).digest('hex')] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** When the last of the files was written, in milliseconds since the epoch. */
async function newestOf(paths: readonly string[]): Promise<number> {
  const times = paths.map(
    async (path) => (await stat(resolve(ROOT, path)).catch(unlessMissing))?.mtimeMs ?? 0,
  );
  return Math.max(...(await Promise.all(times)));
}

function unlessMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}

/** If the folder can't be written, nothing is kept. */
async function keep(file: string, kept: Kept): Promise<void> {
  const temporary = `${file}.${process.pid}`;
  try {
    // Node has created the parent folder. Below /proc, a recursive `mkdir` would never return.
    await mkdir(dirname(file)).catch(unlessExists);
    await writeFile(temporary, JSON.stringify(kept));
    await rename(temporary, file);
  } catch {
    // The next start bundles again.
  }
}

function unlessExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
