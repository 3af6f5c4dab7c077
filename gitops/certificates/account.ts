import { createPrivateKey, createPublicKey } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { derivedKey } from '../../base/derived-key.ts';
import { writeDurably } from '../../base/durable.ts';
import { readJsonFile } from '../../base/json-file.ts';

const accountSchema = z.object({ url: z.string() });

/** This host's account at one authority, kept in a folder. */
interface Account {
  /** PEM. */
  readonly key: string;
  /** `null` until it is registered. */
  readonly url: string | null;
  /** Thumbprint of the public key (RFC 7638). Answers to challenges contain it. */
  readonly thumbprint: string;
  saveUrl(url: string): Promise<void>;
}

/** The name of an authority's folder. Accounts and certificates of two authorities are kept apart. */
export function folderOf(directoryUrl: string): string {
  const { host, pathname } = new URL(directoryUrl);
  return `${host}${pathname}`.replace(/[^a-zA-Z0-9.]+/g, '-').replace(/-$/, '');
}

/**
 * Reads the account's key, or derives it from the secret if it is missing: a proxy that outlives a loss of this folder
 * answers challenges of the same account. Throws if it can't be read: it is never replaced.
 */
export async function openAccount(directory: string, secret: string): Promise<Account> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const keyFile = join(directory, 'account.key');
  const file = join(directory, 'account.json');
  const key = (await readFile(keyFile, 'utf8').catch(nullIfMissing)) ?? (await makeKey(keyFile, secret));
  const jwk = createPublicKey(createPrivateKey(key)).export({ format: 'jwk' });
  const { calculateJwkThumbprint } = await import('jose');
  return {
    key,
    url: await readUrl(file),
    thumbprint: await calculateJwkThumbprint({ ...jwk }),
    saveUrl: (url) => writeDurably(file, JSON.stringify({ url })),
  };
}

async function makeKey(keyFile: string, secret: string): Promise<string> {
  const pem = derivedKey(secret, `ACME account at ${basename(dirname(keyFile))}`);
  await writeDurably(keyFile, pem);
  return pem;
}

/** Without a stored URL, the next order asks the authority for it: the authority knows the account by its key. */
async function readUrl(file: string): Promise<string | null> {
  try {
    return (await readJsonFile(file, accountSchema)).url;
  } catch {
    return null;
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
