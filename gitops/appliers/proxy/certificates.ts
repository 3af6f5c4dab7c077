import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { TerminalError } from '../../../base/errors.ts';

/** PEM files of one name: the certificate with its chain, and its private key. */
export interface CertificatePaths {
  readonly cert: string;
  readonly key: string;
}

/**
 * Where the certificate of a name comes from: an operator's files, an order from a certificate authority, a pair in the
 * manifest, or this host's own authority, which only its containers trust.
 */
export const TLS_MODES = ['files', 'acme', 'uploaded', 'inside'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

const SET_AUTHORITY = 'set ACME_DIRECTORY_URL for this host’s provisioner';

/** The same for `tls: uploaded`. */
export const UPLOAD = 'upload another pair (API: PUT /server-containers/<id>/certificate)';

/** How names of `tls: files` get a certificate, for a person. `put`: what to put into which folder. */
export function filesRemedy(put: string, hasAuthority: boolean): string {
  return hasAuthority
    ? `${setting('acme')}, or ${put}`
    : `${put}, or ${SET_AUTHORITY} and ${setting('acme')}`;
}

/** The same for `tls: acme`. */
export function acmeRemedy(hasAuthority: boolean): string {
  return hasAuthority
    ? 'see in tagyard status what the order waits for'
    : `${SET_AUTHORITY}, or ${setting('files')}`;
}

function setting(tls: 'files' | 'acme'): string {
  return `set tls to ${tls} (API: PATCH /server-containers/<id> {"tls":"${tls}"}; console: Certificates in the settings; git: tls: { mode: ${tls} })`;
}

/** A name that a proxy serves. */
export interface ServedName {
  readonly host: string;
  readonly tls: TlsMode;
  /** The files that the proxy will read at its next start, if known; `null`: none. */
  readonly files?: CertificatePaths | null;
}

/** Where the proxy's certificates come from. */
export interface CertificateSource {
  /**
   * `null`: there is no certificate yet, so the proxy serves the name without TLS. Throws `TerminalError` if an
   * operator must act first.
   */
  pathsFor(host: string, tls: TlsMode): Promise<CertificatePaths | null>;
  /**
   * Identifies the current certificate of a name, if the source itself replaces certificates. A new edition changes the
   * desired state, so it is not drift. `undefined`: there is none, or the source does not replace it.
   */
  edition?(host: string, tls: TlsMode): string | undefined;
  /**
   * False if `pathsFor` would return other files now. Unset: it always returns the same paths, and only the content of
   * the files changes.
   */
  isLatest?(host: string, files: CertificatePaths, tls: TlsMode): Promise<boolean>;
  /** Removes the stored data of all names that are neither among these nor wanted by a manifest. */
  retain(served: readonly ServedName[]): Promise<void>;
}

/**
 * Uses the source that each name asks for. `acme` unset: this host orders no certificates. `inside` unset: its containers
 * have no network of their own.
 */
export function certificatesByMode(sources: {
  readonly files: CertificateSource;
  readonly acme?: CertificateSource;
  readonly uploaded?: CertificateSource;
  readonly inside?: CertificateSource;
}): CertificateSource {
  return {
    async pathsFor(host, tls) {
      const source = sources[tls];
      if (source === undefined) {
        const lacks =
          tls === 'acme'
            ? `has tls: acme, but ACME_DIRECTORY_URL isn’t set on this host: ${acmeRemedy(false)}`
            : 'is a name in a site’s network, but the containers of this host have no network';
        throw new TerminalError(`${host} ${lacks}`);
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

/** The certificate that a vhost was written with; `files: null`: it had none. */
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
 * False if the files have changed, or if the name had no certificate and has one now. Also false if the source throws
 * for such a name: one site must not fail the observation of all sites, and applying that site reports the error.
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

/** 16 hex digits that change with either file; `missing` if one can't be read. */
async function certificateFingerprint({ cert, key }: CertificatePaths): Promise<string> {
  try {
    const hash = createHash('sha256');
    for (const bytes of await Promise.all([readFile(cert), readFile(key)])) hash.update(bytes);
    return hash.digest('hex').slice(0, 16);
  } catch {
    return 'missing';
  }
}
