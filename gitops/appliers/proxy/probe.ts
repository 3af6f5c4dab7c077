import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { RetryableError } from '../../base/errors.ts';
import type { ProxyEndpoint } from './backend.ts';

const INTERVAL_MS = 100;
const ONE_MS = 2_000;
/** Handshakes of 1,000 sites at once would time out in this very process. */
const AT_ONCE = 32;

/**
 * Asks the proxy for `GET /healthz` of an origin, by its own name and SNI, until something behind it answers.
 * Throws `RetryableError` past the deadline.
 */
export async function awaitForwarding(
  endpoint: ProxyEndpoint,
  host: string,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  let deadline = Number.POSITIVE_INFINITY;
  for (;;) {
    signal.throwIfAborted();
    const found = await inTurn(() => look(endpoint, host, signal));
    if (found === null) return;
    // Others' turns are no part of a site's time.
    deadline = Math.min(deadline, performance.now() + timeoutMs);
    if (performance.now() >= deadline) {
      throw new RetryableError(`${host} is not reached through the proxy: ${found}`);
    }
    await wait(INTERVAL_MS, undefined, { signal });
  }
}

let looking = 0;
const waiting: (() => void)[] = [];

/** At most `AT_ONCE` looks are under way; the others wait in order. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (looking >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else looking += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) looking -= 1;
    else next();
  }
}

/** `null` where the upstream answered, whatever it said; else what stood in the way. */
function look(endpoint: ProxyEndpoint, host: string, signal: AbortSignal): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const asked = request({
    host: endpoint.address,
    port: endpoint.tlsPort,
    servername: host,
    headers: { host: endpoint.tlsPort === 443 ? host : `${host}:${endpoint.tlsPort}` },
    path: '/healthz',
    agent: false,
    // Forwarding is what is asked; an operator's files may well be by a CA that only Cloudflare trusts.
    rejectUnauthorized: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(ONE_MS)]),
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
 * Asks the proxy as a certificate authority would for an answer to a challenge of its own. `null` where it is the one
 * that the account's key gives; else what stood in the way.
 */
export async function lookForChallenge(
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
    signal: AbortSignal.any([signal, AbortSignal.timeout(ONE_MS)]),
  });
  asked.on('response', resolve).on('error', reject).end();
  try {
    const answer = (await text(await promise)).trim();
    return answer === `${token}.${thumbprint}` ? null : 'the proxy answers something else to challenges';
  } catch {
    return 'the proxy doesn’t answer challenges for it yet';
  }
}

/** What a proxy itself answers for an upstream that isn't there. (The tag server's own health may be 503.) */
const GATEWAY_ERRORS: ReadonlySet<number> = new Set([502, 504]);
