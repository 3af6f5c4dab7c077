import type { CertificateStatus } from '../report.ts';
import type { KeptName } from './keeper.ts';

/** A name's certificate as the API and the command line show it. */
export function certificateStatus({ host, verdict, certificate, dns }: KeptName): CertificateStatus {
  const time = (at: number) => new Date(at).toISOString();
  return {
    target: 'certificate',
    key: host,
    state: verdict.state,
    reason: verdict.reason,
    issuer: certificate?.issuer ?? null,
    notAfter: certificate === null ? null : time(certificate.notAfter),
    addresses: dns === null ? null : [...dns.addresses],
    nextCheck: time(verdict.nextAt),
  };
}
