import { readFile, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/** A shared key of DNS messages (RFC 8945). `secretFile` contains only the secret, in Base64. */
interface TsigKey {
  readonly name: string;
  readonly algorithm: string;
  readonly secretFile: string;
}

/**
 * Writes a key file for the clients of Knot (`-k`), readable by its owner only: a key on the command line would be
 * public. Throws if the secret can't be read or isn't Base64.
 */
export async function writeTsigKey(path: string, { name, algorithm, secretFile }: TsigKey): Promise<void> {
  const secret = z
    .base64()
    .min(1)
    .safeParse((await readFile(secretFile, 'utf8')).trim());
  if (!secret.success) throw new Error(`${secretFile} must contain only the TSIG secret, in Base64`);
  // An existing file would keep its mode.
  await rm(path, { force: true });
  await writeFile(path, `${algorithm}:${name}:${secret.data}\n`, { mode: 0o600, flag: 'wx' });
}
