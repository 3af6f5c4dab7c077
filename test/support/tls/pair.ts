import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';

/** A certificate for a name with its key, as the API takes them. */
export async function certificatePair(name: string): Promise<{ certificate: string; privateKey: string }> {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-pair-'));
  try {
    const { cert, key } = await (await ensureLocalCa(home)).pathsFor(name);
    return { certificate: await readFile(cert, 'utf8'), privateKey: await readFile(key, 'utf8') };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
