import type { OriginRequest } from '../plugins/contract.ts';
import { EdgeError } from './errors.ts';
import { HOP_HEADER } from './hops.ts';

/** Meant for the next hop only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Headers by which a client, or what stands before it, could claim an address, a host, a place or our trust. */
const CLAIM =
  /^(?:forwarded|via|host|true-client-ip|x-real-ip|x-client-ip|x-cluster-client-ip|client-ip|fastly-client-ip|x-original-forwarded-for|x-forwarded-.*|cf-.*|cdn-loop|x-tagyard-.*)$/;

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
  if (!pathAndQuery.startsWith('/')) throw new TypeError('a path must begin with a slash');
  const bodiless = method === 'GET' || method === 'HEAD' || body === undefined || body === null;
  try {
    const response = await fetch(`${origin}${pathAndQuery}`, {
      method,
      headers: outgoing(headers, visitor, hopSecret),
      redirect: 'manual',
      ...(bodiless ? {} : { body }),
    });
    const answer = new Response(response.body, response);
    strip(answer.headers, HOP_BY_HOP);
    return answer;
  } catch (cause) {
    throw new EdgeError('upstream_failed', { cause });
  }
}

function outgoing(given: Headers, visitor: Visitor, hopSecret: string | undefined): Headers {
  const headers = new Headers(given);
  for (const name of given.get('connection')?.split(',') ?? []) {
    if (name.trim() !== '') headers.delete(name.trim());
  }
  strip(headers, HOP_BY_HOP);
  strip(headers, CLAIM);
  if (visitor.address !== null) headers.set('x-forwarded-for', visitor.address);
  headers.set('x-forwarded-host', visitor.url.host);
  headers.set('x-forwarded-proto', visitor.url.protocol.slice(0, -1));
  if (visitor.country !== undefined) headers.set('x-forwarded-country', visitor.country);
  if (visitor.region !== undefined) headers.set('x-forwarded-region', visitor.region);
  if (hopSecret !== undefined && hopSecret !== '') headers.set(HOP_HEADER, hopSecret);
  return headers;
}

function strip(headers: Headers, names: RegExp): void {
  for (const name of [...headers.keys()]) if (names.test(name)) headers.delete(name);
}
