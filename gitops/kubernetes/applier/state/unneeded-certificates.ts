import { type CertificateSummary, chooseCertificate } from '../../delivery/certificate-choice.ts';

interface CertificateNeeds {
  readonly names: readonly {
    readonly host: string;
    /** The `id` of the name's certificate in the store; `null`: the store has none. */
    readonly stored: string | null;
  }[];
  /** By `id`: the certificates that a gateway doesn't serve. */
  readonly refused: ReadonlySet<string>;
}

/**
 * The delivered certificates that no name needs, pure. A name needs the certificate that the store has for it. While
 * gateways don't serve that one, the name also needs the one that they choose in its place.
 */
export function unneededCertificates<Certificate extends CertificateSummary>(
  delivered: readonly Certificate[],
  { names, refused }: CertificateNeeds,
): Certificate[] {
  const accepted = delivered.filter(({ id }) => !refused.has(id));
  const served = new Set(accepted.map(({ id }) => id));
  const needed = new Set<string>();
  for (const { host, stored } of names) {
    if (stored !== null) needed.add(stored);
    if (stored !== null && served.has(stored)) continue;
    // Another gateway may serve what one has refused.
    const chosen = chooseCertificate(accepted, host) ?? chooseCertificate(delivered, host);
    if (chosen !== undefined) needed.add(chosen.id);
  }
  return delivered.filter(({ id }) => !needed.has(id));
}
