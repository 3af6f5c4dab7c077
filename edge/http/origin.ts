import type { OriginRequest } from '../../plugins/contract.ts';
import { EdgeError } from './errors.ts';
import { HOP_HEADER } from './hops.ts';

/** Meant for the next hop only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/**
 * Headers by which a client, or what stands before it, could claim an address, a host, a place or our trust. By shape,
 * because every platform has names of its own; the proxy, which can only name them, has a list of the known ones.
 */
export const CLAIM =
  /^(?:x-)?(?:forward|origina|tagyard|appengine|gclb|geo|(?:host|via|cf|cdn|fly)\b)|\b(?:client)?(?:ip|addr|address|country)\b/;

/** What the tag server must know of the visitor, found out by the edge. */
export interface Visitor {
  readonly address: string | null;
  /** As the browser sees it. */
  readonly url: URL;
  /** ISO 3166-1 and 3166-2, where the platform knows them. */
  readonly country?: string | undefined;
  readonly region?: string | undefined;
}

export interface OriginDependencies {
  readonly fetch: typeof fetch;
  readonly hopSecret: string | undefined;
}

/**
 * A request to a site's origin. Only `origin`, from the routing entry, says where it goes; redirects are handed back.
 * Throws `upstream_failed` where nobody answers.
 */
export async function fetchOrigin(
  origin: string,
  pathAndQuery: string,
  { method, headers, body }: OriginRequest,
  visitor: Visitor,
  { fetch, hopSecret }: OriginDependencies,
): Promise<Response> {
  if (!pathAndQuery.startsWith('/')) throw new TypeError('no path');
  const outgoing = outgoingHeaders(headers, visitor, hopSecret);
  const bodiless = method === 'GET' || method === 'HEAD';
  try {
    const response = await fetch(`${origin}${pathAndQuery}`, {
      method,
      headers: outgoing,
      redirect: 'manual',
      body: bodiless ? null : (body ?? null),
    });
    const answer = new Response(response.body, response);
    for (const name of response.headers.keys()) if (HOP_BY_HOP.test(name)) answer.headers.delete(name);
    return answer;
  } catch (cause) {
    throw new EdgeError('upstream_failed', { cause });
  }
}

function outgoingHeaders(given: Headers, visitor: Visitor, hopSecret: string | undefined): Headers {
  const headers = new Headers(given);
  // What a client names there need not be a name: asked for by what there is, nothing strange is ever deleted.
  const named = given
    .get('connection')
    ?.toLowerCase()
    .split(/[\s,]+/);
  for (const name of given.keys()) {
    if (HOP_BY_HOP.test(name) || CLAIM.test(name) || named?.includes(name)) headers.delete(name);
  }
  const stated = {
    'x-forwarded-for': visitor.address,
    'x-forwarded-host': visitor.url.host,
    'x-forwarded-proto': visitor.url.protocol.slice(0, -1),
    'x-forwarded-country': visitor.country,
    'x-forwarded-region': visitor.region,
    [HOP_HEADER]: hopSecret,
  };
  for (const [name, value] of Object.entries(stated)) if (value) headers.set(name, value);
  return headers;
}
