import { z } from 'zod';
import type { Vhost } from './desired.ts';

/** Carries `HOP_SECRET` between proxy and edge, in both directions; it never reaches a container. */
export const HOP_SECRET_HEADER = 'x-tagyard-hop';

/**
 * The origin's vhost answers this path with the visitor's address that it would send to the tag server. The edge
 * forwards the prefix, and only the visitor receives the answer.
 */
export const ARRIVAL_PATH = '/_/tagyard/arrival';

/** Headers about the visitor that every vhost sets itself, in place of the client's. */
export const STATED = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;

/** The visitor's location, which only the edge knows: dropped from requests without the hop secret. */
export const RELAYED = ['x-forwarded-country', 'x-forwarded-region'] as const;

/**
 * Other headers by which a client could claim an address, a host, a location or a path through proxies. nginx can drop
 * headers by name only, so these are the ones in common use; the edge drops them by pattern.
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
 * Request headers of the client that a vhost of this kind drops. The preview server keeps `forwarded`: the tag server
 * sends it the visited host in that header, and its pages in the browser depend on it.
 */
export function droppedHeaders(kind: Vhost['kind']): readonly string[] {
  const unrelayed = kind === 'custom' ? RELAYED : [];
  return [HOP_SECRET_HEADER, ...CLAIMS, ...unrelayed, ...(kind === 'preview' ? [] : ['forwarded'])];
}

/** The widest ranges that can be trusted, as prefix lengths; Cloudflare's widest are a /12 and a /29. */
const NARROWEST = { ipv4: 8, ipv6: 20 } as const;

const prefixLength = (cidr: string) => Number(cidr.split('/')[1]);
export const cidrRange = z.union([
  z.cidrv4().refine((cidr) => prefixLength(cidr) >= NARROWEST.ipv4, 'is too wide to be trusted'),
  z.cidrv6().refine((cidr) => prefixLength(cidr) >= NARROWEST.ipv6, 'is too wide to be trusted'),
]);

/** Ranges of the peers that are trusted to state the visitor's address. */
export interface TrustedPeers {
  /** They state it in `cf-connecting-ip`, which they never accept from a client. */
  readonly cloudflare: readonly string[];
  /** The operator's own: the last address of `x-forwarded-for` is the one that they saw. */
  readonly own: readonly string[];
}

export const NO_TRUSTED_PEERS: TrustedPeers = { cloudflare: [], own: [] };
