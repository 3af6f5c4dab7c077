import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatMark, type Identity } from '../../../base/ownership.ts';
import type { ProxyEndpoint, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import type { CertificateSource } from '../../../gitops/appliers/proxy/certificates.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { stopNginx } from '../../../gitops/appliers/proxy/nginx/process.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';

export const HOP_SECRET = 'hop-secret-of-the-tests-0123456789';
export const IDENTITY: Identity = { instance: 'test', host: 'tag-1' };

/** A folder with a local CA, and settings of a proxy that keeps its files there. */
export async function proxyHome(identity: Identity = IDENTITY) {
  const directory = await mkdtemp(join(tmpdir(), 'tagyard-proxy-'));
  const ca = await ensureLocalCa(join(directory, 'ca'));
  const settings: ProxySettings = {
    prefix: join(directory, 'proxy'),
    listen: ['127.0.0.1'],
    httpPort: 0,
    tlsPort: 0,
    hopSecret: HOP_SECRET,
    edgeUpstream: { scheme: 'http', address: '127.0.0.1', port: 9 },
    certificates: ca,
    identity,
    ca: ca.caFile,
  };
  /** Also ends an nginx that runs there, because nginx outlives its backend. */
  const remove = async () => {
    await stopNginx(settings.prefix);
    await rm(directory, { recursive: true, force: true });
  };
  return { directory, ca, settings, remove };
}

/** Certificates from a folder, `<host>.pem` and `<host>.key`, unchecked. */
export function plainFiles(directory: string): CertificateSource {
  return {
    pathsFor: async (host) => ({ cert: join(directory, `${host}.pem`), key: join(directory, `${host}.key`) }),
    retain: async () => undefined,
  };
}

/** A change that puts `spec` (or nothing) under `key`. */
export function put(key: string, spec: ProxySpec | null, hash = '0123456789abcdef') {
  return { key, mark: formatMark(IDENTITY, key.split('/')[0] ?? '', hash), adopt: false, spec };
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface Ask {
  readonly host: string;
  /** The SNI, where it isn't the host; `null` for plain HTTP. */
  readonly servername?: string | null;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Buffer;
  /** Sends the body in chunks and never ends it, so that an answer comes before its end. */
  readonly isEndless?: boolean;
  /** The loopback address to ask from. */
  readonly from?: string;
  /** PEM of the CA; unset: the certificate isn't verified. */
  readonly ca?: string;
  /** Timeout without data; default: 20 s. */
  readonly timeoutMs?: number;
  /** Called with each chunk. */
  readonly onChunk?: (chunk: string) => void;
}

/** One request through a proxy on a connection of its own; rejects where the connection is closed or refused. */
export function ask(endpoint: ProxyEndpoint, asked: Ask): Promise<Answer> {
  const {
    host,
    servername = host,
    path = '/',
    method = 'GET',
    headers = {},
    body,
    isEndless = false,
    from,
    ca,
    timeoutMs = 20_000,
    onChunk,
  } = asked;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const port = servername === null ? endpoint.httpPort : endpoint.tlsPort;
  const options = {
    host: endpoint.address,
    port,
    path,
    method,
    headers: { host: `${host}:${port}`, ...headers },
    agent: false,
    ...(from === undefined ? {} : { localAddress: from }),
    maxHeaderSize: 512 * 1024,
    timeout: timeoutMs,
  };
  const request =
    servername === null
      ? http.request(options)
      : https.request({
          ...options,
          servername,
          ...(ca === undefined ? { rejectUnauthorized: false } : { ca }),
        });
  request.on('response', (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      onChunk?.(chunk);
    });
    response.on('end', () => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
      if (isEndless) request.destroy();
    });
    response.on('error', reject);
  });
  request.on('timeout', () => request.destroy(new Error(`no answer in ${timeoutMs} ms`)));
  request.on('error', reject);
  if (isEndless) request.write(body);
  else request.end(body);
  return promise;
}
