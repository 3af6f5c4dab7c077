import { once } from 'node:events';
import http, { type RequestListener, type Server } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';

/** A request as an upstream saw it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly bodyBytes: number;
  /** The server name of the TLS handshake. */
  readonly servername: string | undefined;
}

/** A real HTTP server that answers what it saw, as JSON; `handle` may answer a request itself, and then returns true. */
export async function startUpstream({
  address = '127.0.0.1',
  port = 0,
  tls,
  name = 'upstream',
  handle = () => false,
  keepAliveMs = 5_000,
  onConnection = () => undefined,
}: {
  address?: string;
  port?: number;
  tls?: { cert: string; key: string };
  /** Sent back as `x-upstream`. */
  name?: string;
  handle?: (...exchange: Parameters<RequestListener>) => boolean;
  /** How long an idle connection is kept; by default as long as the tag server's. */
  keepAliveMs?: number;
  onConnection?: (socket: Socket) => void;
} = {}) {
  const seen: Seen[] = [];
  const listener: RequestListener = (request, response) => {
    if (handle(request, response)) return;
    let bodyBytes = 0;
    request.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length;
    });
    request.on('end', () => {
      const { method = '', url = '', headers, socket } = request;
      const servername = 'servername' in socket ? String(socket.servername) : undefined;
      const entry: Seen = { method, url, headers, bodyBytes, servername };
      seen.push(entry);
      response.writeHead(200, { 'content-type': 'application/json', 'x-upstream': name });
      response.end(JSON.stringify(entry));
    });
  };
  const options = { maxHeaderSize: 512 * 1024, keepAliveTimeout: keepAliveMs };
  const server: Server =
    tls === undefined
      ? http.createServer(options, listener)
      : https.createServer({ ...options, ...tls }, listener);
  server.on('connection', onConnection);
  server.listen(port, address);
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('the upstream has no port');
  return {
    address,
    port: bound.port,
    seen,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
