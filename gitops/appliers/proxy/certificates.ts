import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { TerminalError } from '../../base/errors.ts';

/** PEM files of one name: the certificate with its chain, and its private key. */
export interface CertificatePaths {
  readonly cert: string;
  readonly key: string;
}

/** How a name comes by its certificate: an operator's files, or ordered from a certificate authority. */
export const TLS_MODES = ['files', 'acme'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** A name that a proxy answers on. */
export interface ServedName {
  readonly host: string;
  readonly tls: TlsMode;
  /** What it reads them from at its next start, where it knows; `null`: nothing. */
  readonly files?: CertificatePaths | null;
}

/** Where the proxy's certificates come from. */
export interface CertificateSource {
  /**
   * `null`: none yet, so that the name is served without TLS until there is one. Throws `TerminalError` where a person
   * must do something first.
   */
  pathsFor(host: string, tls: TlsMode): Promise<CertificatePaths | null>;
  /**
   * Which certificate a name has, where the source replaces them by itself: another one is another wish, and not drift.
   * `undefined`: none, or whoever replaces it is somebody else.
   */
  edition?(host: string, tls: TlsMode): string | undefined;
  /**
   * False where `pathsFor` would answer other files by now than these. Unset: it writes over the same ones, whose bytes
   * tell.
   */
  isLatest?(host: string, files: CertificatePaths, tls: TlsMode): Promise<boolean>;
  /** What was kept for any other name may go: these are all that the proxy still needs. */
  retain(served: readonly ServedName[]): Promise<void>;
}

/** Each name's certificate from where its manifest says. `acme` unset: this host has no authority to order from. */
export function certificatesByMode(sources: {
  readonly files: CertificateSource;
  readonly acme?: CertificateSource;
}): CertificateSource {
  return {
    async pathsFor(host, tls) {
      const source = sources[tls];
      if (source === undefined) {
        throw new TerminalError(`${host} wants tls: acme, and ACME_DIRECTORY_URL isn’t set on this host`);
      }
      return await source.pathsFor(host, tls);
    },
    edition: (host, tls) => sources[tls]?.edition?.(host, tls),
    isLatest: async (host, files, tls) => (await sources[tls]?.isLatest?.(host, files, tls)) ?? true,
    async retain(served) {
      for (const tls of TLS_MODES) await sources[tls]?.retain(served.filter((name) => name.tls === tls));
    },
  };
}

/** What a vhost was made with; `null`: there was no certificate. */
export interface UsedCertificate extends ServedName {
  readonly files: (CertificatePaths & { readonly fingerprint: string }) | null;
}

export async function certificateFor(
  source: CertificateSource,
  { host, tls }: ServedName,
): Promise<UsedCertificate> {
  const paths = await source.pathsFor(host, tls);
  const files = paths === null ? null : { ...paths, fingerprint: await certificateFingerprint(paths) };
  return { host, tls, files };
}

/**
 * False where the files have changed since, or where there is a certificate now and was none; or where the source can't
 * tell: why is said to the one site when it is applied, and an observation of all must not fail over it.
 */
export async function isStillCurrent(source: CertificateSource, used: UsedCertificate): Promise<boolean> {
  const { host, tls, files } = used;
  if (files !== null) {
    if ((await certificateFingerprint(files)) !== files.fingerprint) return false;
    return (await source.isLatest?.(host, files, tls)) ?? true;
  }
  try {
    return (await source.pathsFor(host, tls)) === null;
  } catch {
    return false;
  }
}

/** 16 hex digits that change when either file does; `missing` where one can't be read. */
async function certificateFingerprint({ cert, key }: CertificatePaths): Promise<string> {
  try {
    const hash = createHash('sha256');
    for (const bytes of await Promise.all([readFile(cert), readFile(key)])) hash.update(bytes);
    return hash.digest('hex').slice(0, 16);
  } catch {
    return 'missing';
  }
}
