import { open, rename, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A text or bytes, or a text's chunks in order. */
type Content = string | Uint8Array | Iterable<string>;

/** Replaces a file atomically and durably: temporary file, fsync, rename, fsync of the directory. */
export async function writeDurably(path: string, content: Content, mode = 0o600): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeSynced(temporary, content, mode);
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

async function writeSynced(path: string, content: Content, mode = 0o600): Promise<void> {
  const file = await open(path, 'w', mode);
  try {
    await file.writeFile(content);
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
