import type { CertificateFacts } from '../appliers/proxy/certificate-check.ts';
import type { CertificateStatus } from '../report/report.ts';
import type { KeptName } from './keeper.ts';
import type { CertificateVerdict } from './policy.ts';

/** A name's ordered certificate as the API and the command line show it. */
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

/** The same of one from an operator's files, which are looked at whenever the proxy is. */
export function fileStatus(
  host: string,
  { state, reason }: Pick<CertificateVerdict, 'state' | 'reason'>,
  certificate: CertificateFacts | null,
): CertificateStatus {
  const issuer = certificate?.issuer ?? null;
  const notAfter = endOf(certificate);
  return {
    target: 'certificate',
    key: host,
    state,
    reason,
    issuer,
    notAfter,
    addresses: null,
    nextCheck: null,
  };
}

function endOf(certificate: CertificateFacts | null): string | null {
  return certificate === null ? null : new Date(certificate.notAfter).toISOString();
}
