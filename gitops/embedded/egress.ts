import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { getCACertificates } from 'node:tls';
import { lookupWith, parseTarget } from './egress-target.ts';
import { endToEndHeaders } from './hop-by-hop.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** Less than the 5 s after which the tag server's Node closes an idle connection. */
const IDLE_MS = 4000;

interface EgressOptions {
  /** The address of a host; `null` to resolve it by the system. */
  readonly resolve: (host: string) => string | null;
  /** PEM certificates to trust in addition to Node's own. */
  readonly ca: readonly string[];
  /** Port on 127.0.0.1; 0 picks a free one. */
  readonly port?: number;
}

export interface Egress {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * The forward proxy behind the embedded edge. It accepts requests with an absolute target, resolves the host by the
 * zones' records, connects by TLS, verifies the certificate, and streams both ways with unchanged headers. It answers
 * 502 for an unreachable host. CONNECT is not supported: the worker's runtime expects its proxy to do TLS.
 */
export async function startEgress({ resolve, ca, port = 0 }: EgressOptions): Promise<Egress> {
  const agentOptions = { keepAlive: true, timeout: IDLE_MS, lookup: lookupWith(resolve) };
  const agents = {
    'http:': new http.Agent(agentOptions),
    'https:': new https.Agent({ ...agentOptions, ca: [...getCACertificates('default'), ...ca] }),
  };
  // workerd sends the host in the target only.
  const server = http.createServer({ requireHostHeader: false }, (request, response) =>
    forward(request, response, agents),
  );
  server.on('connect', (_request, socket) => socket.end('HTTP/1.1 405 Method Not Allowed\r\n\r\n'));
  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(port, '127.0.0.1', listening);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the egress proxy has no port');
  return {
    host: '127.0.0.1',
    port: address.port,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

type Agents = Readonly<Record<'http:' | 'https:', http.Agent>>;

function forward(request: IncomingMessage, response: ServerResponse, agents: Agents): void {
  const target = parseTarget(request.url ?? '');
  if (target === null) {
    response
      .writeHead(400, { 'content-type': 'text/plain' })
      .end('the request target is not an absolute http(s) URL\n');
    return;
  }
  const { protocol, hostname, port, path, authority } = target;
  // The host of an absolute target takes precedence over the Host header (RFC 9112, 3.2.2).
  const headers = ['Host', authority, ...endToEndHeaders(request.rawHeaders, ['host'])];
  const hasBody =
    request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  const isReadOnly = request.method === 'GET' || request.method === 'HEAD';
  // Without a length, Node would send an empty body in chunks.
  if (!hasBody && !isReadOnly) headers.push('content-length', '0');

  const outgoing = (protocol === 'https:' ? https : http).request({
    agent: agents[protocol],
    hostname,
    port,
    path,
    method: request.method,
    headers,
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
  });
  limitConnecting(outgoing);
  const abandon = () => outgoing.destroy();
  response.once('close', abandon);
  outgoing.once('response', (answer) => {
    response.sendDate = false;
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEndHeaders(answer.rawHeaders));
    // An answer that breaks off must arrive as incomplete: without its last bytes or chunk.
    pipeline(answer, response).catch(() => response.destroy());
  });
  outgoing.once('error', (error: NodeJS.ErrnoException) => {
    // The other side closed an idle connection: a request that only reads can be sent again.
    if (
      outgoing.reusedSocket &&
      error.code === 'ECONNRESET' &&
      isReadOnly &&
      !hasBody &&
      !response.headersSent
    ) {
      response.off('close', abandon);
      forward(request, response, agents);
    } else if (response.headersSent) response.destroy();
    else
      response
        .writeHead(502, { 'content-type': 'text/plain' })
        .end(`${hostname} can't be reached: ${error.message}\n`);
  });
  if (hasBody) pipeline(request, outgoing).catch(() => outgoing.destroy());
  else outgoing.end();
}

function limitConnecting(outgoing: http.ClientRequest): void {
  outgoing.once('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => outgoing.destroy(new Error('no connection in time')), CONNECT_TIMEOUT_MS);
    socket.once('connect', () => clearTimeout(timer));
    outgoing.once('close', () => clearTimeout(timer));
  });
}
