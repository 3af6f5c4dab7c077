import { type ProvisionerCertificate, ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';

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
