import type { CertificateFacts } from '../appliers/proxy/certificate-check.ts';
import type { CertificateStatus } from '../report/report.ts';
import type { WantedName } from './names.ts';
import type { CertificateVerdict, DnsAnswer } from './policy.ts';

/** A name of `tls: acme` with the result of its latest check. */
export interface KeptName extends WantedName {
  readonly verdict: CertificateVerdict;
  readonly certificate: CertificateFacts | null;
  /** `null` if it could not be resolved. */
  readonly dns: DnsAnswer | null;
}

/** The status of an ordered certificate in the API and the command. */
export function orderStatus({ host, verdict, certificate, dns }: KeptName): CertificateStatus {
  return {
    target: 'certificate',
    key: host,
    state: verdict.state,
    reason: verdict.reason,
    issuer: certificate?.issuer ?? null,
    notAfter: endOf(certificate),
    addresses: dns === null ? null : [...dns.addresses],
    nextCheck: new Date(verdict.nextAt).toISOString(),
  };
}

/** The status of a certificate from an operator's files. They are checked at every pass, so it has no next check. */
export function fileStatus(
  host: string,
  { state, reason }: Pick<CertificateVerdict, 'state' | 'reason'>,
  certificate: CertificateFacts | null,
): CertificateStatus {
  return {
    target: 'certificate',
    key: host,
    state,
    reason,
    issuer: certificate?.issuer ?? null,
    notAfter: endOf(certificate),
    addresses: null,
    nextCheck: null,
  };
}

function endOf(certificate: CertificateFacts | null): string | null {
  return certificate === null ? null : new Date(certificate.notAfter).toISOString();
}
