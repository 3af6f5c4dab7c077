import { z } from 'zod';
import {
  COMMON_CLAIMS,
  FORWARDER_HEADERS,
  HOP_HEADER,
  isClaim,
  MAX_BODY_OCTETS,
  OLD_HOP_HEADER,
  PLACE_HEADERS,
  TOLD_HEADERS,
} from '../../../edge/http/request-headers.ts';
import type { Vhost } from './desired.ts';

/** The longest body that a proxy passes on, as the edge does. A site's `maxBodyMb` may be less. */
export const BODY_LIMIT_OCTETS = MAX_BODY_OCTETS;

/** Crawlers are to leave the origins and previews alone. */
export const ROBOTS = { path: '/robots.txt', text: 'User-agent: *\nDisallow: /\n' } as const;

/**
 * Headers that carry `HOP_SECRET` between proxy and edge, in both directions. They never reach a container. The first
 * one is sent. The second one is also accepted, for an edge that is one version behind.
 */
export const HOP_SECRET_HEADERS = [HOP_HEADER, OLD_HOP_HEADER] as const;

/** Marks a probe of our own, as in `edge/base/probe.ts`. The edge reads it, so the vhosts of custom domains pass it on. */
export const PROBE_MARK = 'x-tagyard-probe';

/**
 * The origin's vhost answers this path with the visitor's address that it would send to the tag server. The edge
 * forwards all paths below `/_/`, and only the visitor receives the answer.
 */
export const ARRIVAL_PATH = '/_/tagyard/arrival';

/** Headers about the visitor that every vhost sets itself, in place of the client's. */
export const STATED = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;

/**
 * The headers by which the edge states visitor, host, scheme and place to a host's proxy and to a cluster's gateway.
 * For a gateway they aren't `x-forwarded-*`, because a controller before it may overwrite those.
 */
export const CLAIMS = {
  host: {
    visitor: 'x-forwarded-for',
    host: 'x-forwarded-host',
    scheme: 'x-forwarded-proto',
    country: 'x-forwarded-country',
    region: 'x-forwarded-region',
  },
  gateway: {
    visitor: FORWARDER_HEADERS.visitor,
    host: FORWARDER_HEADERS.host,
    scheme: FORWARDER_HEADERS.scheme,
    country: FORWARDER_HEADERS.country,
    region: FORWARDER_HEADERS.region,
  },
} as const;

/** The visitor's place and what plugins tell, as the edge states them: dropped from requests without the hop secret. */
export const RELAYED: readonly string[] = [...PLACE_HEADERS, ...TOLD_HEADERS];
/** The visitor's place on the hop to the edge. */
const PLACE_FOR_EDGE: readonly string[] = ['x-forwarded-country', 'x-forwarded-region'];

/**
 * The client's request headers that a vhost of this kind drops, for a proxy that can drop them only by exact name.
 * The list lacks place headers that such a proxy sets itself. A preview vhost keeps `forwarded`, in
 * which the tag server sends the visited host: the preview's pages need it.
 */
export function droppedHeaders(kind: Vhost['kind']): readonly string[] {
  const set = kind === 'custom' ? PLACE_FOR_EDGE : RELAYED;
  return [
    ...HOP_SECRET_HEADERS,
    // A forwarder sends them to the edge hostname, which no vhost has.
    ...Object.values(FORWARDER_HEADERS),
    ...COMMON_CLAIMS.filter((name) => !set.includes(name)),
    ...(kind === 'preview' ? [] : ['forwarded']),
  ];
}

/**
 * True if a vhost of this kind drops the client's header of this name (lower case). A proxy uses this function if it
 * can judge each name, and `droppedHeaders` otherwise.
 */
export function isDropped(kind: Vhost['kind'], name: string): boolean {
  const kept = [
    ...STATED,
    ...(kind === 'custom' ? [PROBE_MARK] : RELAYED),
    ...(kind === 'preview' ? ['forwarded'] : []),
  ];
  return isClaim(name) && !kept.includes(name);
}

/** The shortest prefixes of ranges that can be trusted; Cloudflare's shortest are a /13 and a /29. */
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
