import type { X509Certificate } from 'node:crypto';

/** What gateways choose a certificate by. */
export interface CertificateSummary {
  /** Decides between two that expire at the same time. */
  readonly id: string;
  /** Host names, and `*.domain`, in lower case. */
  readonly names: readonly string[];
  /** Milliseconds since 1970. */
  readonly notAfter: number;
}

export function certificateNames({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName
    .split(', ')
    .flatMap((name) => (name.startsWith('DNS:') ? [name.slice('DNS:'.length).toLowerCase()] : []));
}

/**
 * The certificate for a name: one that has the name itself, or else one for all names under its domain. Of several, the
 * one that expires last.
 */
export function chooseCertificate<Certificate extends CertificateSummary>(
  certificates: readonly Certificate[],
  host: string,
): Certificate | undefined {
  const wildcard = `*.${host.slice(host.indexOf('.') + 1)}`;
  const latest = (name: string) =>
    certificates
      .filter(({ names }) => names.includes(name))
      .toSorted((a, b) => b.notAfter - a.notAfter || (a.id < b.id ? -1 : 1))[0];
  return latest(host) ?? latest(wildcard);
}
