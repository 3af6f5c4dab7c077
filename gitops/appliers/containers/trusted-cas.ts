import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeDurably } from '../../base/durable.ts';
import type { Log } from '../../base/log.ts';
import { hash16 } from '../../base/ownership.ts';

/** One file with all CAs that containers trust in addition to Node's own, and the hash of its content. */
interface TrustedCas {
  readonly caFile: string;
  readonly caHash: string;
}

/**
 * Writes the CAs of several PEM files to one, because Node reads one file only. Containers read it as another user. A
 * file that can't be read is logged and omitted: Node starts without a CA that it can't read, too.
 */
export async function joinCas(target: string, files: readonly string[], log: Log): Promise<TrustedCas> {
  const texts: string[] = [];
  for (const file of files) {
    try {
      texts.push(`${(await readFile(file, 'utf8')).trim()}\n`);
    } catch (error) {
      log.warn({ file, err: error }, 'the containers don’t trust this CA: its file can’t be read');
    }
  }
  const text = texts.join('');
  const present = await readFile(target, 'utf8').catch(() => null);
  if (present !== text) {
    await mkdir(dirname(target), { recursive: true });
    await writeDurably(target, text, 0o644);
  }
  return { caFile: target, caHash: hash16(text) };
}
