import { readFile } from 'node:fs/promises';

/**
 * Why all changes on this host are stopped: what is written in the freeze file; `null` where there is none. A file
 * that is there and can't be read stops them too.
 */
export async function frozenBy(path: string): Promise<string | null> {
  try {
    const text = (await readFile(path, 'utf8')).trim();
    return `${path} stops all changes${text === '' ? '' : `: ${text.slice(0, 200)}`}`;
  } catch (error) {
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return absent ? null : `${path} can't be read, so all changes are stopped`;
  }
}
