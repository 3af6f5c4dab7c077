import { type ProvisionerCertificate, ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import type { Dns } from './judge-dns.ts';

/** How long an answer waits for the provisioner. */
const CERTIFICATES_MS = 4_000;

/** The certificates of a site's names. `null`: the provisioner doesn't answer, or answers with an error. */
export async function readCertificates(
  { provisioner, log }: Pick<Context, 'provisioner' | 'log'>,
  site: string,
  requestId: string,
): Promise<readonly ProvisionerCertificate[] | null> {
  try {
    return await provisioner.certificates(site, { requestId }, CERTIFICATES_MS);
  } catch (err) {
    if (!(err instanceof ProvisionerError)) throw err;
    log.warn({ err, site }, 'the certificates of a site can’t be read');
    return null;
  }
}

/**
 * Whether the host already serves a name with a valid certificate although the name doesn't lead to it, so that a change
 * of its record interrupts nothing. `drifted` is a valid certificate, too.
 */
export function isReadyToSwitch(
  dns: Pick<Dns, 'status'>,
  certificate: { readonly state: string; readonly notAfter: string | null } | undefined,
  now: number,
): boolean {
  if (dns.status !== 'missing' && dns.status !== 'wrong') return false;
  if (certificate?.state !== 'live' && certificate?.state !== 'drifted') return false;
  return Date.parse(certificate.notAfter ?? '') > now;
}
