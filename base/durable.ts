import { open, rename, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A text, or its chunks in order. */
type Text = string | Iterable<string>;

/** Replaces a file atomically and durably: temporary file, fsync, rename, fsync of the directory. */
export async function writeDurably(path: string, text: Text, mode = 0o600): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeSynced(temporary, text, mode);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/**
 * Removes an empty folder at the path of a file. Docker creates such a folder if a container was created with a bind of
 * the file (`Binds`) and the file is missing.
 */
export async function removeFolderAt(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
  }
}

async function writeSynced(path: string, text: Text, mode = 0o600): Promise<void> {
  const file = await open(path, 'w', mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes the content of a file durable. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes added, renamed and removed names of a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
