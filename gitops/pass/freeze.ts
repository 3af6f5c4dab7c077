import { readFile } from 'node:fs/promises';

/** Why this host is frozen, with the freeze file's text; `null`: no such file. An unreadable file freezes it too. */
export async function frozenBy(path: string): Promise<string | null> {
  try {
    const text = (await readFile(path, 'utf8')).trim();
    return `${path} stops all changes${text === '' ? '' : `: ${text.slice(0, 200)}`}`;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return isMissing ? null : `${path} can't be read, so all changes are stopped`;
  }
}
