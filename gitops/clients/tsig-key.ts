import { readFile, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/** A shared key of DNS messages (RFC 8945). `secretFile` holds the secret in Base64 and nothing else. */
interface TsigKey {
  readonly name: string;
  readonly algorithm: string;
  readonly secretFile: string;
}

/**
 * Writes a key as Knot's clients read it (`-k`), for its owner only, so that it is on no argument list. Throws where
 * the secret can't be read or isn't Base64.
 */
export async function writeTsigKey(path: string, { name, algorithm, secretFile }: TsigKey): Promise<void> {
  const secret = z
    .base64()
    .min(1)
    .safeParse((await readFile(secretFile, 'utf8')).trim());
  if (!secret.success) throw new Error(`${secretFile} must hold the TSIG secret in Base64 and nothing else`);
  // A file that is there already would keep its mode.
  await rm(path, { force: true });
  await writeFile(path, `${algorithm}:${name}:${secret.data}\n`, { mode: 0o600, flag: 'wx' });
}
