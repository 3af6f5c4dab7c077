import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { syncDirectory, writeDurably } from '../../../base/durable.ts';
import { hash16 } from '../../../base/ownership.ts';
import { nginxName } from '../../appliers/proxy/nginx/quote.ts';
import { type CertificateSummary, certificateNames } from '../delivery/certificate-choice.ts';

/** A certificate and the private key that belongs to it. */
export interface CertificatePair extends CertificateSummary {
  /** A hash of both texts, by which their files are named. */
  readonly id: string;
  /** Those that nginx can serve. */
  readonly names: readonly string[];
  readonly cert: string;
  readonly key: string;
}

/** Each pair is parsed once: to parse hundreds of them again would take most of the time of a change. */
const known = new WeakMap<object, CertificatePair>();

/**
 * Reads a pair of PEM texts; the certificate may have expired. Throws an `Error` whose message contains no part of the
 * key.
 */
export function readPair(texts: { readonly cert: string; readonly key: string }): CertificatePair {
  const found = known.get(texts) ?? parsePair(texts);
  known.set(texts, found);
  return found;
}

function parsePair({ cert, key }: { readonly cert: string; readonly key: string }): CertificatePair {
  const leaf = certificateOf(cert);
  if (!leaf.checkPrivateKey(keyOf(key))) throw new Error('the key is not that of the certificate');
  checkStrength(cert, key);
  // An authority may sign names that nginx can't serve, such as one with an underscore. The other names must be served.
  const names = certificateNames(leaf).filter((name) => nginxName.safeParse(name).success);
  const id = hash16(`${cert}\n${key}`);
  return { id, names, notAfter: leaf.validToDate.getTime(), cert, key };
}

/**
 * Throws if OpenSSL would refuse the key or the signature as too weak when nginx loads the file. Without this check,
 * its names would have no certificate, although another Secret may have a good one. The security level is that of
 * Debian's OpenSSL, which is in the image.
 */
function checkStrength(cert: string, key: string): void {
  try {
    // Without `ca`, Node would load all root authorities.
    createSecureContext({ cert, key, ca: [], ciphers: 'DEFAULT@SECLEVEL=2' });
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*:/, '') : String(error);
    throw new Error(`nginx refuses the certificate or its key: ${reason.trim()}`);
  }
}

function certificateOf(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new Error('tls.crt holds no certificate in PEM');
  }
}

function keyOf(pem: string) {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new Error('tls.key holds no unencrypted private key in PEM');
  }
}

/** The files of pairs in a folder. No file ever changes, because another pair has other file names. */
export class PairFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  pathsOf({ id }: CertificatePair): { cert: string; key: string } {
    return { cert: join(this.#directory, `${id}.pem`), key: join(this.#directory, `${id}.key`) };
  }

  /** Writes the files that are missing. */
  async write(pairs: readonly CertificatePair[]): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const known = new Set(await readdir(this.#directory));
    for (const pair of pairs) {
      const paths = this.pathsOf(pair);
      if (!known.has(`${pair.id}.key`)) await writeDurably(paths.key, pair.key);
      if (!known.has(`${pair.id}.pem`)) await writeDurably(paths.cert, pair.cert);
    }
  }

  /** Removes the files of all other pairs. */
  async retain(pairs: readonly CertificatePair[]): Promise<void> {
    const ids = new Set(pairs.map(({ id }) => id));
    const names = await readdir(this.#directory);
    const unused = names.filter((name) => !ids.has(name.replace(/\..*$/, '')));
    for (const name of unused) await rm(join(this.#directory, name), { force: true });
    if (unused.length > 0) await syncDirectory(this.#directory);
  }
}
