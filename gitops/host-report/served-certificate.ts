import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import type { HostReport } from '../../edge/verification/contract.ts';

/** A name, and the socket that is to show its certificate. */
export interface Shown {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** The certificate that is shown for a name, whoever signed it: who asks it in earnest judges that. */
export async function lookAtCertificate(
  { name, address, port }: Shown,
  timeoutMs: number,
): Promise<HostReport['certificates'][number]> {
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
    if (raw === undefined) reject(new Error('none was shown'));
    else resolve(new X509Certificate(raw));
  });
  socket.once('error', reject);
  socket.once('timeout', () => reject(new Error('no answer in time')));
  try {
    const shown = await promise;
    const covers = shown.checkHost(name, { subject: 'never' }) !== undefined;
    return { name, validTo: shown.validToDate.toISOString(), covers, problem: null };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { name, validTo: null, covers: false, problem };
  } finally {
    socket.destroy();
  }
}
