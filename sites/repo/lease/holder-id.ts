import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurably } from '../../../base/durable.ts';

/**
 * The id by which a lease names the daemon of this state folder. It is created once, and written durably before it is
 * used.
 */
export async function holderId(stateDir: string): Promise<string> {
  const path = join(stateDir, 'holder');
  const known = (await readFile(path, 'utf8').catch(() => '')).trim();
  if (/^[0-9a-f-]{36}$/.test(known)) return known;
  const id = randomUUID();
  await writeDurably(path, `${id}\n`);
  return id;
}
