import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { getCACertificates } from 'node:tls';
import { endToEndHeaders } from '../../base/http/hop-by-hop.ts';
import { statusOfFailure } from './egress-errors.ts';
import { DISCARDED, lookupWith, parseTarget } from './egress-target.ts';

/** As long as Cloudflare waits for a connection (docs/facts.md, Cloudflare Workers). */
const CONNECT_TIMEOUT_MS = 19_000;
/** Less than the 5 s after which the tag server's Node closes an idle connection. */
const IDLE_MS = 4000;

/** Counts the passes of a request through workers (docs/facts.md, Cloudflare Workers). */
const VIA = 'cf-ew-via';

interface EgressOptions {
  /** The address of a host; `null` to resolve it by the system; `100::` for a proxied name without an origin. */
  readonly resolve: (host: string) => string | null;
  /** PEM certificates to trust in addition to Node's own. */
  readonly ca: readonly string[];
  /** Port on 127.0.0.1; 0 picks a free one. */
  readonly port?: number;
  /** The port of the edge that sends its requests here. Unset: it passes requests on to the schemes' ports only. */
  readonly edgePort?: () => number;
  readonly connectTimeoutMs?: number;
  /** Time until a name without an origin fails; default: `connectTimeoutMs`. */
  readonly silenceMs?: number;
}

export interface Egress {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * The forward proxy behind the embedded edge. It accepts requests with an absolute target, resolves the host by the
 * zones' records, connects, verifies the TLS certificate, and streams both ways with end-to-end headers. If an origin
 * gives no answer, the proxy answers with Cloudflare's status. A request that the edge's worker passes on is sent to
 * the name's origin, and fails after the time limit if the name has none. Its client has chosen host and port, and most
 * names of one machine lead to loopback: so no port but the scheme's and the edge's own gets it. Any other request for a
 * name without an origin is resolved by the system, like a visitor's. CONNECT is not supported: the worker's runtime
 * expects its proxy to do TLS.
 */
export async function startEgress({
  resolve,
  ca,
  port = 0,
  edgePort,
  connectTimeoutMs = CONNECT_TIMEOUT_MS,
  silenceMs = connectTimeoutMs,
}: EgressOptions): Promise<Egress> {
  const agentOptions = { keepAlive: true, timeout: IDLE_MS, lookup: lookupWith(resolve) };
  const agents = {
    'http:': new http.Agent(agentOptions),
    'https:': new https.Agent({ ...agentOptions, ca: [...getCACertificates('default'), ...ca] }),
  };
  const ways: Ways = {
    agents,
    connectTimeoutMs,
    silenceMs,
    isDiscarded: (host) => resolve(host) === DISCARDED,
    edgePort,
  };
  // workerd sends the host in the target only.
  const server = http.createServer({ requireHostHeader: false }, (request, response) =>
    forward(request, response, ways),
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

interface Ways {
  readonly agents: Readonly<Record<'http:' | 'https:', http.Agent>>;
  readonly connectTimeoutMs: number;
  readonly silenceMs: number;
  /** Whether packets to that host are dropped. */
  readonly isDiscarded: (host: string) => boolean;
  readonly edgePort: (() => number) | undefined;
}

function forward(request: IncomingMessage, response: ServerResponse, ways: Ways): void {
  const target = parseTarget(request.url ?? '');
  if (target === null) {
    response
      .writeHead(400, { 'content-type': 'text/plain' })
      .end('the request target is not an absolute http(s) URL\n');
    return;
  }
  const { protocol, hostname, port, path, authority } = target;
  const fail = (error: NodeJS.ErrnoException) =>
    response
      .writeHead(statusOfFailure(error), { 'content-type': 'text/plain' })
      .end(`${hostname} can't be reached: ${error.message}\n`);
  const isPassedOn = request.headers[VIA] !== undefined;
  if (isPassedOn && port !== (protocol === 'https:' ? 443 : 80) && port !== ways.edgePort?.()) {
    fail(Object.assign(new Error(`requests aren't passed on to port ${port}`), { code: 'ECONNREFUSED' }));
    return;
  }
  if (isPassedOn && ways.isDiscarded(hostname)) {
    const timer = setTimeout(() => fail(noConnection()), ways.silenceMs);
    response.once('close', () => clearTimeout(timer));
    return;
  }
  // The host of an absolute target takes precedence over the Host header (RFC 9112, 3.2.2).
  const headers = ['Host', authority, ...endToEndHeaders(request.rawHeaders, ['host'])];
  const hasBody =
    request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  const isReadOnly = request.method === 'GET' || request.method === 'HEAD';
  // Without a length, Node would send an empty body in chunks.
  if (!hasBody && !isReadOnly) headers.push('content-length', '0');

  const outgoing = (protocol === 'https:' ? https : http).request({
    agent: ways.agents[protocol],
    hostname,
    port,
    path,
    method: request.method,
    headers,
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
  });
  limitConnecting(outgoing, ways.connectTimeoutMs);
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
      forward(request, response, ways);
    } else if (response.headersSent) response.destroy();
    else fail(error);
  });
  if (hasBody) pipeline(request, outgoing).catch(() => outgoing.destroy());
  else outgoing.end();
}

function noConnection(): NodeJS.ErrnoException {
  return Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' });
}

function limitConnecting(outgoing: http.ClientRequest, timeoutMs: number): void {
  outgoing.once('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => outgoing.destroy(noConnection()), timeoutMs);
    socket.once('connect', () => clearTimeout(timer));
    outgoing.once('close', () => clearTimeout(timer));
  });
}
