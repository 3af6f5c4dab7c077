import http, { type IncomingMessage, type RequestListener } from 'node:http';
import https from 'node:https';
import { Transform } from 'node:stream';
import type { SecureContext } from 'node:tls';
import { createProxyServer } from 'httpxy';
import { TAG_SERVER } from '../../../../sites/manifest/resources/tag-server.ts';
import type { ProxySettings } from '../backend.ts';
import { followOptions, type PerOption, type Vhost } from '../desired.ts';
import { ARRIVAL_PATH, BODY_LIMIT_OCTETS, NO_TRUSTED_PEERS, ROBOTS } from '../policy.ts';
import { visitorFinder } from '../visitor-address.ts';
import { answerChallenge, isChallenge } from './challenge.ts';
import {
  asksForRules,
  forwardedHeaders,
  forwardedMethod,
  type ProxiedRequest,
  readRequest,
} from './forward.ts';

/** A vhost with its loaded certificate; `null` if it has none yet, and so no TLS. */
export interface ServedVhost {
  readonly vhost: Vhost;
  readonly context: SecureContext | null;
}

interface EmbeddedProxyDeps
  extends Pick<
    ProxySettings,
    'hopSecret' | 'previousHopSecret' | 'challengeKey' | 'edgeUpstream' | 'trusted'
  > {
  /** Called at each handshake and request. */
  readonly find: (host: string) => ServedVhost | undefined;
  /** PEM of the CA that an `https` edge is verified by; default: Node's own. */
  readonly ca?: string;
}

interface EmbeddedProxy {
  /** Creates a server that doesn't listen yet. Called once for each address. */
  http(): http.Server;
  https(): https.Server;
  /** Closes idle connections to upstreams. */
  close(): void;
}

/** What the options of a vhost may change, and how each of them does. */
const USUAL = { mostOctets: BODY_LIMIT_OCTETS };
const HANDLING: PerOption<Partial<typeof USUAL>> = {
  maxBodyMb: (most) => ({ mostOctets: most * 1_048_576 }),
};

const ARRIVAL_HEADERS = { 'content-type': 'text/plain', 'cache-control': 'no-store' };
const POLICY_HEADERS = { 'content-type': 'text/javascript; charset=utf-8', 'cache-control': 'no-store' };
/** Less than the 5 s after which the tag server closes an idle connection. */
const UPSTREAM_IDLE_MS = 4_000;
const UPSTREAM_TIMEOUT_MS = 120_000;
const CLIENT_IDLE_MS = 75_000;
/** How long the rest of a body that is too large is read. nginx's `lingering_timeout` is as long. */
const LINGER_MS = 5_000;

/** Serves the same vhosts as nginx: streams both ways, and closes the connection for an unknown name. */
export function buildEmbeddedProxy(deps: EmbeddedProxyDeps): EmbeddedProxy {
  const { find, hopSecret, previousHopSecret, challengeKey, edgeUpstream, ca } = deps;
  const secrets = { hopSecret, previousHopSecret };
  const idle = { keepAlive: true, timeout: UPSTREAM_IDLE_MS };
  const plain = new http.Agent(idle);
  const secure = new https.Agent({ ...idle, ...(ca === undefined ? {} : { ca }) });
  const proxy = createProxyServer({ proxyTimeout: UPSTREAM_TIMEOUT_MS });
  proxy.on('proxyRes', ({ headers }) => {
    // Fields of the upstream's connection, not of the client's.
    delete headers.connection;
    delete headers['keep-alive'];
  });
  proxy.on('error', (_error, _request, response) => badGateway(response));
  const visitorOf = visitorFinder(deps.trusted ?? (() => NO_TRUSTED_PEERS));
  let nextUpstream = 0;

  function targetOf(vhost: Exclude<Vhost, { kind: 'policy' }>) {
    if (vhost.kind === 'custom') {
      const { scheme, address, port } = edgeUpstream;
      const agent = scheme === 'https' ? secure : plain;
      const target = { protocol: `${scheme}:`, host: address, port };
      return { target, agent, ssl: { servername: vhost.edgeHost } };
    }
    nextUpstream += 1;
    const { upstreams } = vhost;
    const { address = '', port = 0 } = upstreams[nextUpstream % upstreams.length] ?? {};
    return { target: { protocol: 'http:', host: address, port }, agent: plain };
  }

  const listener =
    (scheme: 'http' | 'https'): RequestListener =>
    (request, response) => {
      const asked = readRequest(request);
      const vhost = asked === null ? undefined : find(asked.host)?.vhost;
      if (asked !== null && scheme === 'http' && vhost?.tls === 'acme' && isChallenge(asked)) {
        answerChallenge(asked, challengeKey, response);
        return;
      }
      if (asked === null || vhost === undefined || (scheme === 'http' && vhost.kind !== 'custom')) {
        request.socket.destroy();
        return;
      }
      if (isMisdirected(request, asked)) {
        response.writeHead(421).end();
        return;
      }
      if (vhost.kind === 'policy') {
        if (asked.target.startsWith(`/${vhost.token}/`)) {
          response.writeHead(200, POLICY_HEADERS).end(vhost.script);
        } else response.writeHead(404).end();
        return;
      }
      if (vhost.kind !== 'custom') {
        if (asksForRules(request, asked, secrets)) {
          response.writeHead(200, { 'content-type': 'text/plain' }).end(ROBOTS.text);
          return;
        }
        request.method = forwardedMethod(request, asked);
      }
      const { mostOctets }: typeof USUAL = Object.assign(
        { ...USUAL },
        ...followOptions(HANDLING, vhost.options),
      );
      if (Number(request.headers['content-length']) > mostOctets) {
        tooLarge(request, response);
        return;
      }
      const isChunked = request.headers['transfer-encoding'] !== undefined;
      request.headers = forwardedHeaders(request, vhost, asked, { ...secrets, visitorOf });
      if (vhost.kind === 'origin' && asked.target === ARRIVAL_PATH) {
        response.writeHead(200, ARRIVAL_HEADERS).end(String(request.headers['x-forwarded-for'] ?? ''));
        return;
      }
      request.url = asked.target;
      const buffer = isChunked && { buffer: limitedBody(request, response, mostOctets) };
      const options = { ...targetOf(vhost), ...buffer };
      void proxy.web(request, response, options).catch(() => badGateway(response));
    };

  const options = { maxHeaderSize: TAG_SERVER.maxHeaderOctets, keepAliveTimeout: CLIENT_IDLE_MS };
  return {
    http: () => http.createServer(options, listener('http')),
    https: () =>
      https.createServer(
        {
          ...options,
          minVersion: 'TLSv1.2',
          SNICallback: (name, done) => {
            const served = find(name.toLowerCase());
            if (served?.context) done(null, served.context);
            else done(new Error(`${name} isn't served here`));
          },
        },
        listener('https'),
      ),
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

/** The connection was opened for another name (RFC 9110, 15.5.20). */
function isMisdirected({ socket }: IncomingMessage, { host }: ProxiedRequest): boolean {
  const name = 'servername' in socket ? socket.servername : undefined;
  return typeof name === 'string' && name.toLowerCase() !== host;
}

/**
 * The rest of the body is read for a while: a sender that writes all of it first would find the connection closed, and never
 * read the answer.
 */
function tooLarge(request: IncomingMessage, response: http.ServerResponse): void {
  if (response.headersSent) return void request.socket.destroy();
  response.writeHead(413, { 'content-type': 'text/plain' }).end('Too Large\n');
  const late = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once('close', () => clearTimeout(late)).resume();
}

/** Passes a body whose length isn't stated on, until it is too long. */
function limitedBody(request: IncomingMessage, response: http.ServerResponse, most: number): Transform {
  let octets = 0;
  const passing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      octets += chunk.length;
      if (octets <= most) return done(null, chunk);
      request.unpipe(passing);
      tooLarge(request, response);
      passing.destroy();
    },
  });
  return request.pipe(passing);
}

function badGateway(response: unknown): void {
  if (!(response instanceof http.ServerResponse)) return;
  if (response.writableEnded) return;
  if (response.headersSent) response.destroy();
  else response.writeHead(502, { 'content-type': 'text/plain' }).end('Bad Gateway\n');
}
