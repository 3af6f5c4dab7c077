import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import type { HostReport } from '../../edge/verification/contract.ts';

/** A name, and the socket that serves its certificate. */
export interface CertificateEndpoint {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** Reads the certificate that is served for a name. Accepts any issuer: real visits verify it. Never throws. */
export async function readServedCertificate(
  endpoint: CertificateEndpoint,
  timeoutMs: number,
): Promise<HostReport['certificates'][number]> {
  const { name } = endpoint;
  try {
    const certificate = await servedCertificate(endpoint, timeoutMs);
    const validTo = certificate.validToDate.toISOString();
    const validFrom = certificate.validFromDate.toISOString();
    return { name, validTo, validFrom, covers: covers(certificate, name), problem: null };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { name, validTo: null, covers: false, problem };
  }
}

/** A handshake without a certificate. */
export class NoCertificate extends Error {
  override readonly name = 'NoCertificate';
}

export function covers(certificate: X509Certificate, name: string): boolean {
  return certificate.checkHost(name, { subject: 'never' }) !== undefined;
}

/** The certificate that is served for a name. Throws if none is. */
export async function servedCertificate(
  { name, address, port }: CertificateEndpoint,
  timeoutMs: number,
): Promise<X509Certificate> {
  const { promise, resolve, reject } = Promise.withResolvers<X509Certificate>();
  const socket = connect({
    host: address,
    port,
    servername: name,
    rejectUnauthorized: false,
    timeout: timeoutMs,
  });
  socket.once('secureConnect', () => {
    const { raw } = socket.getPeerCertificate();
    if (raw === undefined) reject(new NoCertificate('no certificate was served'));
    else resolve(new X509Certificate(raw));
  });
  socket.once('error', reject);
  socket.once('timeout', () => reject(new Error('no answer in time')));
  return await promise.finally(() => socket.destroy());
}
