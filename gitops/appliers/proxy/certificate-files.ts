import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TerminalError } from '../contract.ts';
import { checkCertificate } from './certificate-check.ts';
import type { CertificatePaths, CertificateSource } from './certificates.ts';

/**
 * `tls: files`: an operator's own files in `directory`, for the exact name (`<host>.pem`, `<host>.key`), else for a
 * wildcard of its parent (`_.<parent>.pem`, `_.<parent>.key`). Read only; what couldn't be served is refused with the
 * reason (see `checkCertificate`), and whatever is served meanwhile goes on.
 */
export function certificateFiles(
  directory: string,
  { now = Date.now }: { now?: () => number } = {},
): CertificateSource {
  return {
    // They are the operator's.
    async retain() {},
    async pathsFor(host) {
      const names = [host, `_.${host.split('.').slice(1).join('.')}`];
      const faults: string[] = [];
      for (const name of names) {
        const paths = { cert: join(directory, `${name}.pem`), key: join(directory, `${name}.key`) };
        const pair = await readPair(paths);
        if (pair === null) continue;
        const checked = checkCertificate({ ...pair, host }, now());
        if ('facts' in checked) return paths;
        faults.push(`${paths.cert}: ${checked.fault}`);
      }
      if (faults.length > 0) throw new TerminalError(`no certificate for ${host}: ${faults.join('; ')}`);
      const wanted = names.map((name) => `${name}.pem and ${name}.key`).join(', or ');
      throw new TerminalError(`no certificate for ${host}: put ${wanted} into ${directory}`);
    },
  };
}

/** `null` where one of them is missing or can't be read. */
async function readPair({ cert, key }: CertificatePaths): Promise<{ chain: string; key: string } | null> {
  try {
    const [chain, privateKey] = await Promise.all([readFile(cert, 'utf8'), readFile(key, 'utf8')]);
    return { chain, key: privateKey };
  } catch {
    return null;
  }
}
