import type { CertificateStatus, ResourceStatus } from './report.ts';

/** Certificates are listed among the resources; no other target has this name. */
export function isCertificate(one: ResourceStatus | CertificateStatus): one is CertificateStatus {
  return one.target === 'certificate';
}
