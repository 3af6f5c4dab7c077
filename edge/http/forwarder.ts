import type { RegistryDomain } from '../../plugins/document.ts';
import { setBounded } from '../base/bounded-map.ts';
import { hostOf, wellFormed } from './hops.ts';
import { statedPlace } from './place.ts';
import { type Hop, isUnder } from './public-url.ts';
import { FORWARDER_HEADERS } from './request-headers.ts';

/** `ft_` and 32 octets as base64url. */
const TOKEN = /^ft_[A-Za-z0-9_-]{43}$/;

const encoder = new TextEncoder();

/** What a valid token and a host of its domain prove. */
interface Proof {
  readonly host: string;
  /** When the token's grace ends, milliseconds since the epoch. */
  readonly until: number;
}

/**
 * Proofs by token and stated host, kept because hashing and comparing cost a request as much as all else here. Another
 * version of the site's documents begins without any, so a rotated token isn't known any longer. Invalid tokens aren't
 * kept.
 */
const proofs = new WeakMap<readonly RegistryDomain[], Map<string, Proof>>();
const MAX_PROOFS = 500;
/** A token, a space, and the longest host name of DNS with a port, with some room. A header may be much longer. */
const MAX_KEY_LENGTH = 512;

/** `198.51.100.7:443`, `[2001:db8::7]:443`: some servers know the visitor's address only together with the port. */
const WITH_PORT = /^(?:([\d.]+)|\[([0-9a-fA-F:.]+)\]):\d{1,5}$/;

/**
 * What a domain's own server states of a request that it forwards. `domains` are those of the request's prefix. `null`:
 * the token is not a valid one of these domains, or the host isn't that domain's own, so nothing that the headers state
 * counts.
 */
export async function readForwarder(
  headers: Headers,
  domains: readonly RegistryDomain[],
  now: number,
): Promise<Hop | null> {
  const token = headers.get(FORWARDER_HEADERS.token) ?? '';
  const stated = headers.get(FORWARDER_HEADERS.host);
  const key = `${token} ${stated}`;
  const kept = proofs.get(domains)?.get(key);
  const proof =
    kept !== undefined && now < kept.until ? kept : await prove(token, hostOf(stated), domains, now);
  if (proof === null) return null;
  if (proof !== kept) keep(domains, key, proof);
  const given = headers.get(FORWARDER_HEADERS.visitor)?.trim() ?? '';
  const [, ipv4, ipv6] = WITH_PORT.exec(given) ?? [];
  const address = wellFormed(ipv4 ?? ipv6 ?? given);
  return {
    address,
    // The connection shows only where the domain's server is.
    place: statedPlace(headers.get(FORWARDER_HEADERS.country), headers.get(FORWARDER_HEADERS.region)),
    forwardedHost: proof.host,
    forwardedProto: headers.get(FORWARDER_HEADERS.scheme) === 'http' ? 'http' : 'https',
    isTrusted: address !== null,
  };
}

async function prove(
  token: string,
  host: string | null,
  domains: readonly RegistryDomain[],
  now: number,
): Promise<Proof | null> {
  if (!TOKEN.test(token)) return null;
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(token)));
  let until = now;
  for (const domain of domains) {
    const end = endOf(domain, hash);
    if (host !== null && isOwn(host, domain)) until = Math.max(until, end);
  }
  return host === null || until <= now ? null : { host, until };
}

function keep(domains: readonly RegistryDomain[], key: string, proof: Proof): void {
  if (key.length > MAX_KEY_LENGTH) return;
  const known = proofs.get(domains) ?? new Map<string, Proof>();
  setBounded(known, MAX_PROOFS, key, proof);
  proofs.set(domains, known);
}

/**
 * Until when the domain knows a token with this hash; zero: it doesn't. Compares every hash of the domain, each in
 * constant time, so that timing reveals nothing of them.
 */
function endOf({ sameOrigin }: RegistryDomain, hash: Uint8Array): number {
  let end = 0;
  for (const { hash: hex, until } of sameOrigin?.tokens ?? []) {
    const own = Uint8Array.fromHex(hex);
    const equal = own.byteLength === hash.byteLength && crypto.subtle.timingSafeEqual(own, hash);
    if (equal) end = Math.max(end, until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until));
  }
  return end;
}

function isOwn(host: string, { domain, cookieDomain }: RegistryDomain): boolean {
  return isUnder(host.replace(/:\d+$/, ''), cookieDomain ?? domain);
}
