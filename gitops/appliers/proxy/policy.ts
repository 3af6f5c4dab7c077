import { z } from 'zod';
import type { Vhost } from './desired.ts';

/** Carries `HOP_SECRET` between the proxy and the edge, both ways; it never reaches a container. */
export const HOP_SECRET_HEADER = 'x-tagyard-hop';

/**
 * Answered by an origin itself: the address that it would tell the tag server. Under a prefix that the edge hands on,
 * and told to nobody but the visitor whose address it is.
 */
export const ARRIVAL_PATH = '/_/tagyard/arrival';

/** What every vhost says itself of the visitor, instead of what the client says. */
export const STATED = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;

/** Where the edge saw the visitor; the proxy knows nothing of it, so without the hop secret nobody says it. */
export const RELAYED = ['x-forwarded-country', 'x-forwarded-region'] as const;

/**
 * The other names under which a client could claim an address, a host, a place or a way it came: those in common use,
 * for nginx drops by name only. What comes by way of the edge has been rid of everything of their shape.
 */
const CLAIMS = [
  'x-forwarded',
  'forwarded-for',
  'x-forwarded-by',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-forwarded-countryregion',
  'x-original-host',
  'x-original-forwarded-for',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'client-ip',
  'true-client-ip',
  'x-originating-ip',
  'x-remote-ip',
  'x-remote-addr',
  'fastly-client-ip',
  'fly-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-ipcountry',
  'x-appengine-country',
  'x-appengine-region',
  'x-appengine-city',
  'x-appengine-citylatlong',
  'x-appengine-user-ip',
  'x-gclb-country',
  'x-gclb-region',
  'x-geo-country',
  'x-geo-region',
] as const;

/**
 * Request headers of the client's that a vhost of this kind doesn't pass on. `forwarded` stays for the preview
 * server: the tag server tells it the visited host by that header, and its browser pages depend on it.
 */
export function droppedHeaders(kind: Vhost['kind']): readonly string[] {
  const unrelayed = kind === 'custom' ? RELAYED : [];
  return [HOP_SECRET_HEADER, ...CLAIMS, ...unrelayed, ...(kind === 'preview' ? [] : ['forwarded'])];
}

/** A wider one would let half the internet say who it is: Cloudflare's widest are a /12 and a /29. */
const NARROWEST = { ipv4: 8, ipv6: 20 } as const;

const prefixLength = (cidr: string) => Number(cidr.split('/')[1]);
export const cidrRange = z.union([
  z.cidrv4().refine((cidr) => prefixLength(cidr) >= NARROWEST.ipv4, 'is too wide to be trusted'),
  z.cidrv6().refine((cidr) => prefixLength(cidr) >= NARROWEST.ipv6, 'is too wide to be trusted'),
]);

/** Ranges of the peers that are believed about the visitor's address, and no others. */
export interface TrustedPeers {
  /** They name the visitor in `cf-connecting-ip`, which they never take from outside. */
  readonly cloudflare: readonly string[];
  /** Of our own: the last address of `x-forwarded-for` is the one that they saw themselves. */
  readonly own: readonly string[];
}

export const NO_TRUSTED_PEERS: TrustedPeers = { cloudflare: [], own: [] };
