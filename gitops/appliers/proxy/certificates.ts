import { createHash } from 'node:crypto';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TerminalError } from '../contract.ts';

/** PEM files of one name: the certificate with its chain, and its private key. */
export interface CertificatePaths {
  readonly cert: string;
  readonly key: string;
}

/** Where the proxy's certificates come from. Throws `TerminalError` where there is none for `host`. */
export interface CertificateSource {
  pathsFor(host: string): Promise<CertificatePaths>;
}

/**
 * `tls: files`: an operator's own files in `directory`, for the exact name (`<host>.pem`, `<host>.key`), else for a
 * wildcard of its parent (`_.<parent>.pem`, `_.<parent>.key`). Read only.
 */
export function certificateFiles(directory: string): CertificateSource {
  return {
    async pathsFor(host) {
      const names = [host, `_.${host.split('.').slice(1).join('.')}`];
      for (const name of names) {
        const paths = { cert: join(directory, `${name}.pem`), key: join(directory, `${name}.key`) };
        if (await readable(paths)) return paths;
      }
      const wanted = names.map((name) => `${name}.pem and ${name}.key`).join(', or ');
      throw new TerminalError(`no certificate for ${host}: put ${wanted} into ${directory}`);
    },
  };
}

async function readable({ cert, key }: CertificatePaths): Promise<boolean> {
  try {
    await Promise.all([access(cert), access(key)]);
    return true;
  } catch {
    return false;
  }
}

/** 16 hex digits that change when either file does; `missing` where one can't be read. */
export async function certificateFingerprint({ cert, key }: CertificatePaths): Promise<string> {
  try {
    const hash = createHash('sha256');
    for (const bytes of await Promise.all([readFile(cert), readFile(key)])) hash.update(bytes);
    return hash.digest('hex').slice(0, 16);
  } catch {
    return 'missing';
  }
}
