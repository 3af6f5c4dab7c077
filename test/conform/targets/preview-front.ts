import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProxyServer } from 'httpxy';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';
import { startTlsFront } from '../../support/proxy/tls-front.ts';
import type { HandedOver } from '../tag-server/target.ts';

/**
 * Starts a TLS server on this address, in front of a preview server. Like Tagyard's proxy, it has a name of one label,
 * which no name server knows, and a certificate of its own CA.
 */
export async function startPreviewFront(address: string, preview: string) {
  await using opening = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), 'tagyard-conform-'));
  opening.defer(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
  const ca = await ensureLocalCa(home);
  const relay = createProxyServer();
  relay.on('error', (_error, _request, response) => response?.destroy());
  const front = await startTlsFront(
    ca,
    () => (request, response) => void relay.web(request, response, { target: preview }),
    address,
  );
  opening.defer(() => front.close());
  const name = `preview-${randomBytes(4).toString('hex')}`;
  const running = opening.move();
  return {
    address,
    name,
    port: front.port,
    caFile: ca.caFile,
    connections: front.connections,
    handedOver: (): HandedOver[] =>
      front.seen.map(({ method = '', url = '', headers: { host, forwarded } }) => ({
        method,
        path: url,
        host,
        forwarded,
      })),
    close: () => running.disposeAsync(),
  };
}
