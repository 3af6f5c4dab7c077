import type { CertificateFacts } from '../../sites/manifest/certificate-check.ts';
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
    ...lifetimeOf(certificate),
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
    ...lifetimeOf(certificate),
    addresses: null,
    nextCheck: null,
  };
}

function lifetimeOf(certificate: CertificateFacts | null): Pick<CertificateStatus, 'notBefore' | 'notAfter'> {
  if (certificate === null) return { notBefore: null, notAfter: null };
  const { notBefore, notAfter } = certificate;
  return { notBefore: new Date(notBefore).toISOString(), notAfter: new Date(notAfter).toISOString() };
}
