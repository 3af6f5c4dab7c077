import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A text, or its pieces in order. */
type Text = string | Iterable<string>;

/** Whole or not at all, and there after a power cut: temporary file, fsync, rename, fsync of the directory. */
export async function writeDurably(path: string, text: Text, mode = 0o600): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeSynced(temporary, text, mode);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

export async function writeSynced(path: string, text: Text, mode = 0o600): Promise<void> {
  const file = await open(path, 'w', mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes what was written to a file last. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes names that were added, renamed or removed in a directory last. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
