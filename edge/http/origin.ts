import type { OriginRequest, PluginContext } from '../../plugins/contract.ts';
import { noteAnswer, noteHit } from '../logs/hit.ts';
import type { Notes } from '../logs/request-record.ts';
import { EdgeError } from './errors.ts';
import { placeHeaders } from './place.ts';
import { keepCookies, type PassesCookie } from './prefix.ts';
import { FORWARDER_HEADERS, HOP_HEADER, isClaim, MAX_BODY_OCTETS } from './request-headers.ts';

/** Headers for the next hop only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(?:connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Milliseconds until an origin's answer must begin. The preview server answers long polls after 20 s. */
export const ORIGIN_TIMEOUT_MS = 30_000;

/**
 * A request is sent again only if it fails in this part of the timeout, 20 s: Cloudflare gives up a silent address
 * after 19 s. Once connected, Cloudflare answers 522 only after 90 s, so a 522 within 20 s means that nothing was sent.
 */
const RESEND_PART = 2 / 3;

/**
 * Cloudflare's answers where an origin has got nothing of a request: connection or TLS has failed. Cloudflare itself
 * sends again after these and no others (docs/facts.md, Cloudflare Workers).
 */
const NOT_SENT = /^52[12356]$/;

/** RFC 9110, 9.2.1. A hit sent by GET counts as safe, too. */
const SAFE = /^(?:GET|HEAD|OPTIONS)$/;

interface OriginDependencies {
  /** Base URL of the origin, from the routing entry. */
  readonly origin: string;
  /** The request's URL as the browser sees it. */
  readonly url: URL;
  readonly visitor: Omit<PluginContext['visitor'], 'isTrusted'>;
  /** Which of the request's cookies the tag server gets. */
  readonly passesCookie: PassesCookie;
  readonly fetch: typeof fetch;
  readonly hopSecret: string | undefined;
  /** Milliseconds until the answer must begin. */
  readonly originTimeout: number;
  readonly now: () => number;
  readonly notes: Notes;
}

/**
 * Sends a request to a site's origin. The host is always that of `origin`; redirects are returned, not followed. A
 * request whose connection failed is sent once more. Throws `body_too_large`, and `upstream_failed` if no answer begins
 * in time.
 */
export async function fetchOrigin(
  pathAndQuery: string,
  request: OriginRequest,
  { fetch, hopSecret, origin, originTimeout, now, url, visitor, passesCookie, notes }: OriginDependencies,
): Promise<Response> {
  if (!pathAndQuery.startsWith('/')) throw new TypeError('no path');
  const { method } = request;
  // The proxy in front of the tag server ends a longer body whose length isn't stated.
  if (Number(request.headers.get('content-length')) > MAX_BODY_OCTETS) {
    throw new EdgeError('body_too_large', { detail: 'The tag server takes bodies of at most 8 MiB' });
  }
  const outgoing = outgoingHeaders(request.headers, { ...visitor, url, notes }, hopSecret);
  keepCookies(outgoing, passesCookie);
  const bodiless = method === 'GET' || method === 'HEAD';
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), originTimeout);
  try {
    const noted = noteHit(pathAndQuery, bodiless ? { ...request, body: null } : request, notes);
    const body = noted instanceof Promise ? await unlessAborted(noted, late.signal) : noted;
    const send = () =>
      fetch(`${origin}${pathAndQuery}`, {
        method,
        headers: outgoing,
        redirect: 'manual',
        signal: late.signal,
        body: body ?? null,
      });
    const until = now() + originTimeout * RESEND_PART;
    // A stream can be read only once.
    const response = await (body instanceof ReadableStream
      ? send()
      : sendTwice(send, { isSafe: SAFE.test(method), isLate: () => now() > until, notes }));
    noteAnswer(pathAndQuery, response.status, notes);
    const answer = new Response(response.body, response);
    for (const name of response.headers.keys()) if (HOP_BY_HOP.test(name)) answer.headers.delete(name);
    return answer;
  } catch (cause) {
    throw new EdgeError('upstream_failed', { cause });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Sends a request. After a failure, sends it again if the origin can't have got it, or if its method is safe to send
 * twice. Both times, the platform chooses the origin's address. A rejected `fetch` doesn't say how far the request
 * got, and neither does 520.
 */
async function sendTwice(
  send: () => Promise<Response>,
  {
    isSafe,
    isLate,
    notes,
  }: { readonly isSafe: boolean; readonly isLate: () => boolean; readonly notes: Notes },
): Promise<Response> {
  let failure = 'a lost connection';
  try {
    const response = await send();
    const { status, body } = response;
    if (isLate() || !(NOT_SENT.test(`${status}`) || (isSafe && status === 520))) return response;
    failure = `status ${status}`;
    await body?.cancel();
  } catch (error) {
    if (isLate() || !isSafe) throw error;
  }
  notes.cause = `sent again after ${failure}`;
  return send();
}

/** Rejects with the signal's reason if that comes first. */
function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
    work.then(resolve, reject);
  });
}

function outgoingHeaders(
  given: Headers,
  {
    address: visitor,
    country,
    region,
    url,
    notes,
  }: Pick<OriginDependencies, 'url' | 'notes'> & OriginDependencies['visitor'],
  hopSecret: string | undefined,
): Headers {
  const headers = new Headers(given);
  // Only headers that exist are deleted: `connection` may list what isn't a header name, and `delete` would throw.
  const perConnection = given
    .get('connection')
    ?.toLowerCase()
    .split(/[\s,]+/);
  for (const name of given.keys()) {
    if (HOP_BY_HOP.test(name) || isClaim(name) || perConnection?.includes(name)) headers.delete(name);
  }
  const { told } = notes;
  const address = told.address === undefined ? visitor : told.address;
  const own = {
    'x-forwarded-for': address,
    'x-forwarded-host': url.host,
    'x-forwarded-proto': url.protocol.slice(0, -1),
    ...placeHeaders({ country, region }),
    ...told.headers,
    ...(hopSecret === undefined ? {} : statements({ address, country, region, url })),
    [HOP_HEADER]: hopSecret,
    // The request's own id, never the client's: templates write it beside what they log.
    'trace-id': notes.requestId,
  };
  for (const [name, value] of Object.entries(own)) if (value) headers.set(name, value);
  return headers;
}

/** The same facts for a cluster's gateway, because the front before it may overwrite `x-forwarded-*`. */
function statements({
  address,
  country,
  region,
  url,
}: Pick<OriginDependencies, 'url'> & OriginDependencies['visitor']): Record<string, string | null> {
  return {
    [FORWARDER_HEADERS.visitor]: address,
    [FORWARDER_HEADERS.host]: url.host,
    [FORWARDER_HEADERS.scheme]: url.protocol.slice(0, -1),
    [FORWARDER_HEADERS.country]: country,
    [FORWARDER_HEADERS.region]: region,
  };
}
