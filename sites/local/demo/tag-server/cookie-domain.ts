import type { IncomingMessage } from 'node:http';
import { getDomain } from 'tldts';

/**
 * The `Domain` of a cookie that a client in the container sets with `domain: auto`: the highest domain that the visitor's
 * host can own by the public suffix list. `null`, for a host-only cookie: the host is an address, a single label or itself
 * a public suffix. The visitor's host is that of `Forwarded`, else of `X-Forwarded-Host`, else of `Host`.
 */
export function cookieDomain({ headers }: IncomingMessage): string | null {
  const forwarded = /(?:^|[;,\s])host="?([^";,\s]+)/i.exec(headers.forwarded ?? '')?.[1];
  const stated = String(headers['x-forwarded-host'] ?? '')
    .split(',', 1)[0]
    ?.trim();
  const host = forwarded || stated || headers.host || '';
  return getDomain(host, { allowPrivateDomains: true });
}
