import { setBounded } from '../base/bounded-map.ts';
import type { Place } from './place.ts';

/** What the hop before the edge says of a request, as far as it is trusted. */
export interface Hop {
  /** The visitor's address; null where it is unknown. */
  readonly address: string | null;
  readonly place: Place;
  /** Host (with port) and scheme that our proxy or the domain's own server was asked for; null if neither has sent its secret. */
  readonly forwardedHost: string | null;
  readonly forwardedProto: 'http' | 'https' | null;
  /** Whether the address is the visitor's, as far as the trusted hops know it. */
  readonly isTrusted: boolean;
}

/** Origins in their normal form, by scheme and host: parsing a URL costs more than all else here. */
const origins = new Map<string, string>();
const MAX_ORIGINS = 500;

/**
 * The origin as the visitor's browser sees it. The scheme is the forwarded one, if there is one. The host is the forwarded
 * one if it is one of `ownHosts` (registrable parts of the proven domains) or under one; else it is the edge hostname.
 */
export function publicOrigin(requested: URL, hop: Hop, ownHosts: readonly string[]): string {
  if (hop.forwardedHost === null && hop.forwardedProto === null) return requested.origin;
  const protocol = hop.forwardedProto ?? requested.protocol.slice(0, -1);
  const forwarded = (hop.forwardedHost ?? '').replace(/:\d+$/, '');
  const ours = ownHosts.some((own) => isUnder(forwarded, own));
  const host = ours ? hop.forwardedHost : requested.host;
  const given = `${protocol}://${host}`;
  const known = origins.get(given);
  if (known !== undefined) return known;
  const { origin } = new URL(given);
  setBounded(origins, MAX_ORIGINS, given, origin);
  return origin;
}

/** The host of an origin in its normal form, without the port. */
export const hostnameOf = (origin: string) => origin.replace(/^[a-z]+:\/\/|:\d+$/g, '');

/** The URL as the visitor's browser sees it. */
export function publicUrl(requested: URL, origin: string): URL {
  return origin === requested.origin ? requested : new URL(origin + requested.pathname + requested.search);
}

/** True where `host` is `domain` or a subdomain of it. */
export const isUnder = (host: string, domain: string) => host === domain || host.endsWith(`.${domain}`);
