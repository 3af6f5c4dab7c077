import type { RegistryDomain } from '../../plugins/document.ts';
import { hostOf, wellFormed } from './hops.ts';
import { statedPlace } from './place.ts';
import { type Hop, isUnder } from './public-url.ts';
import { FORWARDER_HEADERS } from './request-headers.ts';

/** `ft_` and 32 octets as base64url. */
const TOKEN = /^ft_[A-Za-z0-9_-]{43}$/;

/** `198.51.100.7:443`, `[2001:db8::7]:443`: some servers know the visitor's address only together with the port. */
const WITH_PORT = /^(?:([\d.]+)|\[([0-9a-fA-F:.]+)\]):\d{1,5}$/;

/**
 * What a domain's own server states of a request that it forwards. `null` without a valid token of one of `domains`, the
 * domains of the request's prefix, or with a host that isn't that domain's own: then nothing that it states counts.
 */
export async function readForwarder(
  headers: Headers,
  domains: readonly RegistryDomain[],
  now: number,
): Promise<Hop | null> {
  const token = headers.get(FORWARDER_HEADERS.token) ?? '';
  if (!TOKEN.test(token)) return null;
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  const host = hostOf(headers.get(FORWARDER_HEADERS.host));
  const owner = domains.find((domain) => knows(domain, new Uint8Array(hash), now) && isOwn(host, domain));
  if (owner === undefined) return null;
  const given = headers.get(FORWARDER_HEADERS.visitor)?.trim() ?? '';
  const [, ipv4, ipv6] = WITH_PORT.exec(given) ?? [];
  const address = wellFormed(ipv4 ?? ipv6 ?? given);
  return {
    address,
    // The platform knows only where the domain's server is.
    place: statedPlace(headers.get(FORWARDER_HEADERS.country), headers.get(FORWARDER_HEADERS.region)),
    forwardedHost: host,
    forwardedProto: headers.get(FORWARDER_HEADERS.scheme) === 'http' ? 'http' : 'https',
    isTrusted: address !== null,
  };
}

/** Compares every hash of the domain, each in constant time, so that timing reveals nothing of them. */
function knows({ sameOrigin }: RegistryDomain, hash: Uint8Array, now: number): boolean {
  let known = false;
  for (const { hash: hex, until } of sameOrigin?.tokens ?? []) {
    const own = Uint8Array.fromHex(hex);
    const equal = own.byteLength === hash.byteLength && crypto.subtle.timingSafeEqual(own, hash);
    if (equal && (until === undefined || now < Date.parse(until))) known = true;
  }
  return known;
}

function isOwn(host: string | null, { domain, cookieDomain }: RegistryDomain): boolean {
  return host !== null && isUnder(host.replace(/:\d+$/, ''), cookieDomain ?? domain);
}
