import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeFolderAt, writeDurably } from '../../../base/durable.ts';
import { hash16 } from '../../../base/ownership.ts';
import type { ContainerSpec } from '../../../sites/manifest/containers.ts';

/** The CAs of the names in the sites' networks. */
export interface InsideAuthorities {
  /** Changes if the authorities are lost and made again. */
  readonly id: string;
  /** The PEM file of the CA of one name, in a folder of its own. */
  caFileOf(name: string): Promise<string>;
}

/** The CAs that containers trust in addition to Node's own. */
interface TrustedCas {
  /** The same PEM file for all containers. */
  readonly caFile?: string;
  /** The file for a container; made before its start. */
  readonly caFileOf?: (spec: Pick<ContainerSpec, 'previewHost' | 'policyHost'>) => Promise<string>;
  /** Changes with what those files contain. */
  readonly caHash?: string;
}

/** The usual label of PEM, and two others that OpenSSL accepts too. */
const CERTIFICATE = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/;

/**
 * The operator's CA (`own`, a PEM file), and those of the names in a site's network (`inside`; `null`: there are
 * no such networks). Throws an `Error` if the operator's CA can't be read: otherwise, all containers would be replaced
 * by ones that don't trust it.
 */
export async function trustedCas(
  own: string | undefined,
  inside: InsideAuthorities | null,
): Promise<TrustedCas> {
  const text = own === undefined ? '' : await readCertificates(own);
  if (inside === null) return own === undefined ? {} : { caFile: own };
  /** Only the files that are being made: a file that was made earlier may be gone, together with its CA. */
  const joined = new Map<string, Promise<string>>();
  return {
    caHash: hash16(`${inside.id}\n${text}`),
    async caFileOf({ previewHost, policyHost }) {
      const ca = await inside.caFileOf(previewHost);
      if (policyHost === undefined && text === '') return ca;
      const policyCa = policyHost === undefined ? null : await inside.caFileOf(policyHost);
      const key = `${ca} ${policyCa ?? ''}`;
      const file = joined.get(key) ?? joinCas(ca, policyCa, text).finally(() => joined.delete(key));
      joined.set(key, file);
      return await file;
    },
  };
}

async function readCertificates(file: string): Promise<string> {
  try {
    const text = await readFile(file, 'utf8');
    if (!CERTIFICATE.test(text)) throw new Error('there is no certificate (PEM) in it');
    return `${text.trim()}\n`;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`CONTAINER_CA_FILE ${file}: ${reason}`, { cause });
  }
}

/** Writes all to one file, because Node reads one only. Containers read it as another user. */
async function joinCas(ca: string, policyCa: string | null, own: string): Promise<string> {
  const file = join(dirname(ca), policyCa === null ? 'trusted.pem' : 'trusted-policy.pem');
  const files = policyCa === null ? [ca] : [ca, policyCa];
  const texts = await Promise.all(files.map(async (path) => (await readFile(path, 'utf8')).trim()));
  const text = [...texts, own].join('\n');
  if ((await readFile(file, 'utf8').catch(() => null)) === text) return file;
  await removeFolderAt(file);
  await writeDurably(file, text, 0o644);
  return file;
}

/**
 * The file for a child process, which trusts the operator's CA (`own`, a PEM file) and that of its policy script;
 * `undefined`: none is needed.
 */
export function processCaOf(own: string | undefined, inside: InsideAuthorities) {
  return async ({ policyHost }: Pick<ContainerSpec, 'policyHost'>): Promise<string | undefined> => {
    if (policyHost === undefined) return own;
    const ca = await inside.caFileOf(policyHost);
    return own === undefined ? ca : await joinCas(ca, null, await readCertificates(own));
  };
}
