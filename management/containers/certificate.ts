import { checkCertificateFiles, isCertificateFor } from '../../sites/manifest/certificate-check.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { ManagementProblem } from '../http/errors.ts';

/** Throws `invalid_certificate` if the pair can serve none of the container's names; it never quotes the key. */
export function demandCertificate(
  { customDomains, hostnames: { origin, preview } }: Manifest,
  { certificate: chain, privateKey: key }: { readonly certificate: string; readonly privateKey: string },
  now: number,
): void {
  const names = [...customDomains, origin, preview];
  const host = names.find((name) => isCertificateFor(chain, name)) ?? names[0] ?? origin;
  const checked = checkCertificateFiles({ chain, key, host }, now);
  if ('fault' in checked) throw new ManagementProblem('invalid_certificate', { detail: checked.fault });
}
