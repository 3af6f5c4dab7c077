import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { RetryableError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import type { ProxyEndpoint } from './backend.ts';

const INTERVAL_MS = 100;
/** The timeout of one request. */
const REQUEST_MS = 2_000;
/** With 1,000 concurrent TLS handshakes, this process would be too slow and they would time out. */
const limited = limit(32);

/**
 * Requests `/healthz` of an origin from the proxy, with the origin's name and SNI, until the upstream answers. Throws
 * `RetryableError` after `timeoutMs`, counted from the end of the first request.
 */
export async function awaitForwarding(
  endpoint: ProxyEndpoint,
  host: string,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  let deadline = Number.POSITIVE_INFINITY;
  for (;;) {
    signal.throwIfAborted();
    const found = await limited(() => probeOrigin(endpoint, host, signal));
    if (found === null) return;
    // The time that the first request waits for other sites' requests doesn't count.
    deadline = Math.min(deadline, performance.now() + timeoutMs);
    if (performance.now() >= deadline) {
      throw new RetryableError(`${host} is not reached through the proxy: ${found}`);
    }
    await wait(INTERVAL_MS, undefined, { signal });
  }
}

/** Resolves to `null` if the upstream itself answered, with any status; else to the failure. */
function probeOrigin(endpoint: ProxyEndpoint, host: string, signal: AbortSignal): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const asked = request({
    host: endpoint.address,
    port: endpoint.tlsPort,
    servername: host,
    headers: { host: endpoint.tlsPort === 443 ? host : `${host}:${endpoint.tlsPort}` },
    path: '/healthz',
    agent: false,
    // Only forwarding is tested here. An operator's certificate may be from a CA that only Cloudflare trusts.
    rejectUnauthorized: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
  });
  asked.on('response', (response) => {
    response.resume();
    resolve(GATEWAY_ERRORS.has(response.statusCode ?? 502) ? `HTTP ${response.statusCode}` : null);
  });
  asked.on('error', (error) => resolve(error.message));
  asked.end();
  return promise;
}

/**
 * Requests the answer to an http-01 challenge from the proxy, as a certificate authority does, with a token of its own.
 * Resolves to `null` if the answer is right for the account's key; else to the failure.
 */
export async function probeChallenge(
  endpoint: ProxyEndpoint,
  { host, thumbprint, signal }: { host: string; thumbprint: string; signal: AbortSignal },
): Promise<string | null> {
  const token = randomUUID();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const asked = requestHttp({
    host: endpoint.address,
    port: endpoint.httpPort,
    headers: { host },
    path: `/.well-known/acme-challenge/${token}`,
    agent: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
  });
  asked.on('response', resolve).on('error', reject).end();
  try {
    const answer = (await text(await promise)).trim();
    return answer === `${token}.${thumbprint}` ? null : 'the proxy returns a wrong answer to challenges';
  } catch {
    return 'the proxy doesn’t answer challenges for it yet';
  }
}

/**
 * The statuses that a proxy itself returns if the upstream is unreachable. (A tag server may answer 503 for its own
 * health.)
 */
const GATEWAY_ERRORS: ReadonlySet<number> = new Set([502, 504]);
