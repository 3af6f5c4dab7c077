import { readFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { LocalCa } from '../../../sites/local/local-ca.ts';

export interface TlsFront {
  readonly port: number;
  /** All requests, for all names, in the order of arrival. */
  readonly seen: readonly IncomingMessage[];
  /** The number of connections that arrived, including those whose handshake failed. */
  connections(): number;
  close(): Promise<void>;
}

/**
 * Starts one real HTTPS server for many names, each with its own certificate. It listens on a free port of `address`,
 * by default the loopback address.
 */
export async function startTlsFront(
  certificates: Pick<LocalCa, 'pathsFor'>,
  handlerOf: (host: string) => RequestListener,
  address = '127.0.0.1',
): Promise<TlsFront> {
  const seen: IncomingMessage[] = [];
  let connections = 0;
  const server = https.createServer(
    {
      SNICallback(name, done) {
        contextFor(certificates, name).then((context) => done(null, context), done);
      },
    },
    (request, response) => {
      seen.push(request);
      handlerOf((request.headers.host ?? '').replace(/:\d+$/, ''))(request, response);
    },
  );
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    seen,
    connections: () => connections,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function contextFor(certificates: Pick<LocalCa, 'pathsFor'>, name: string) {
  const paths = await certificates.pathsFor(name);
  const [cert, key] = await Promise.all([readFile(paths.cert), readFile(paths.key)]);
  return createSecureContext({ cert, key });
}
