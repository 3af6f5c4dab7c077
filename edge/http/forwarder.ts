import type { RegistryDomain } from '../../plugins/document.ts';
import { setBounded } from '../base/bounded-map.ts';
import { hostOf, wellFormed } from './hops.ts';
import { statedPlace } from './place.ts';
import { type Hop, isUnder } from './public-url.ts';
import { FORWARDER_HEADERS } from './request-headers.ts';

/** `ft_` and 32 octets as base64url. */
const TOKEN = /^ft_[A-Za-z0-9_-]{43}$/;

const encoder = new TextEncoder();

/**
 * SHA-256 of tokens that were valid, because hashing costs a request as much as all else here. A stranger's token is never
 * kept. Each token is compared all the same: its grace may have ended since.
 */
const hashes = new Map<string, Uint8Array>();
const MAX_HASHES = 500;

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
  const hash = hashes.get(token) ?? (await hashOf(token));
  const host = hostOf(headers.get(FORWARDER_HEADERS.host));
  if (!domains.some((domain) => knows(domain, hash, now) && isOwn(host, domain))) return null;
  setBounded(hashes, MAX_HASHES, token, hash);
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

async function hashOf(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(token)));
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
