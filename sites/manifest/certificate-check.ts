import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** Facts from a certificate. Times are milliseconds since 1970. */
export interface CertificateFacts {
  readonly notBefore: number;
  readonly notAfter: number;
  /** The issuer's common name, or its whole name if it has none. */
  readonly issuer: string;
}

/** `until`: the earliest time at which a certificate of the chain expires. */
export type Checked =
  | { readonly facts: CertificateFacts; readonly until: number }
  | { readonly fault: string };

/** What of a manifest's `tls` says where the certificate of a name comes from. */
interface TlsChoice {
  readonly mode: 'files' | 'acme' | 'uploaded';
  readonly others?: 'files' | 'acme' | undefined;
  readonly certificate?: string | undefined;
}

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Checks that `host` can be served with these PEM texts: the leaf comes first, each further certificate is the issuer
 * of the one before it, the key belongs to the leaf, the leaf is for the host, and none has expired. `fault` is a
 * message for an operator; it contains no part of the key.
 */
export function checkCertificateFiles(
  { chain, key, host }: { chain: string; key: string; host: string },
  now: number,
): Checked {
  const certificates = readChain(chain);
  const [leaf] = certificates ?? [];
  if (certificates === null || leaf === undefined) return { fault: 'the file holds no certificate in PEM' };
  const privateKey = readKey(key);
  if (privateKey === null) return { fault: 'the key file holds no unencrypted private key in PEM' };
  if (!leaf.checkPrivateKey(privateKey)) return { fault: 'the key is not that of the certificate' };
  if (!isCertificateFor(chain, host)) {
    return { fault: `the certificate is for ${namesOf(leaf)}, not for ${host}` };
  }
  const broken = certificates.findIndex((certificate, index) => {
    const before = certificates[index - 1];
    return before !== undefined && !(before.checkIssued(certificate) && before.verify(certificate.publicKey));
  });
  if (broken > 0)
    return { fault: `certificate ${broken + 1} of the file is not the issuer of the one before it` };
  for (const [index, { validFromDate, validToDate }] of certificates.entries()) {
    const which = index === 0 ? 'the certificate' : `certificate ${index + 1} of the file`;
    if (validToDate.getTime() <= now) return { fault: `${which} ended on ${dayOf(validToDate)}` };
    if (validFromDate.getTime() > now)
      return { fault: `${which} is not valid before ${dayOf(validFromDate)}` };
  }
  const ends = certificates.map(({ validToDate }) => validToDate.getTime());
  return { facts: factsOf(leaf), until: Math.min(...ends) };
}

/** Where the certificate of one of a site's names comes from: an uploaded pair serves only the names that it covers. */
export function tlsOf(
  { mode, others = 'files', certificate = '' }: TlsChoice,
  host: string,
): TlsChoice['mode'] {
  if (mode !== 'uploaded') return mode;
  return isCertificateFor(certificate, host) ? mode : others;
}

/** Whether the first certificate in a PEM text has this name. */
export function isCertificateFor(chain: string, host: string): boolean {
  return readChain(chain)?.[0]?.checkHost(host, { subject: 'never' }) !== undefined;
}

/** Facts from the first certificate in a PEM text, unchecked; `null` if there is none. */
export function readFacts(chain: string): CertificateFacts | null {
  const [leaf] = readChain(chain) ?? [];
  return leaf === undefined ? null : factsOf(leaf);
}

function factsOf({ validFromDate, validToDate, issuer }: X509Certificate): CertificateFacts {
  const name = /^CN=(.+)$/m.exec(issuer)?.[1] ?? issuer.replaceAll('\n', ', ');
  return { notBefore: validFromDate.getTime(), notAfter: validToDate.getTime(), issuer: name };
}

function readChain(pem: string): X509Certificate[] | null {
  try {
    return (pem.match(BLOCK) ?? []).map((block) => new X509Certificate(block));
  } catch {
    return null;
  }
}

function readKey(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}

function namesOf({ subjectAltName = 'no name' }: X509Certificate): string {
  return subjectAltName.replaceAll('DNS:', '');
}

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}
