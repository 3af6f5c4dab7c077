import type { Vhost } from './desired.ts';

/** Carries `HOP_SECRET` between the proxy and the edge, both ways; it never reaches a container. */
export const HOP_HEADER = 'x-tagyard-hop';

/**
 * Answered by an origin itself: the address that it would tell the tag server. Under a prefix that the edge hands on,
 * and told to nobody but the visitor whose address it is.
 */
export const ARRIVAL_PATH = '/_/tagyard/arrival';

/** What every vhost says itself of the visitor, instead of what the client says. */
export const STATED = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;

/** The other names under which a client could claim an address, a host or a way it came. */
const CLAIMS = [
  'x-forwarded-port',
  'x-forwarded-server',
  'x-original-host',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
] as const;

/**
 * Request headers of the client's that a vhost of this kind doesn't pass on. `forwarded` stays for the preview
 * server: the tag server tells it the visited host by that header, and its browser pages depend on it.
 */
export function droppedHeaders(kind: Vhost['kind']): readonly string[] {
  return [HOP_HEADER, ...CLAIMS, ...(kind === 'preview' ? [] : ['forwarded'])];
}
