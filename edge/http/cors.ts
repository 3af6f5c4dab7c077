import type { Site } from '../../plugins/contract.ts';
import { EdgeError } from './errors.ts';
import { isUnder } from './public-url.ts';

/** Chromium's upper limit; other browsers accept it. */
const PREFLIGHT_MAX_AGE_SECONDS = 7200;

/** Origins already found allowed: parsing one costs as much as the rest of a preflight. Dropped with the `Site`. */
const allowed = new WeakMap<Site, Set<string>>();
const MAX_ALLOWED = 100;
/** `https://`, the longest host name of DNS, and a port. `URL` accepts hosts of any length that a header can have. */
const MAX_ORIGIN_LENGTH = 8 + 253 + 6;

/**
 * The origin whose pages may read the answer: its host is an active domain of the site or under one. Returns `null`
 * without an `origin` header; throws `origin_not_allowed` for any other origin, the opaque `null` included.
 */
export function allowedOrigin(request: Request, site: Site): string | null {
  const origin = request.headers.get('origin');
  if (origin === null) return null;
  const known = allowed.get(site);
  if (known?.has(origin)) return origin;
  if (!isAllowed(origin, site)) throw new EdgeError('origin_not_allowed', { headers: { vary: 'origin' } });
  if (origin.length <= MAX_ORIGIN_LENGTH) {
    allowed.set(site, known && known.size < MAX_ALLOWED ? known.add(origin) : new Set([origin]));
  }
  return origin;
}

function isAllowed(origin: string, { domains }: Site): boolean {
  const url = URL.parse(origin);
  return (
    url?.origin === origin &&
    /^https?:/.test(origin) &&
    domains.some(({ domain }) => isUnder(url.hostname, domain))
  );
}

/** The response to a preflight request. */
export function preflight(methods: readonly string[]): Response {
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': 'content-type, x-gtm-server-preview',
      'access-control-max-age': String(PREFLIGHT_MAX_AGE_SECONDS),
    },
  });
}

/** Lets pages of `origin` read the answer, with credentials; `null` lets none. The answer varies by origin either way. */
export function allowOrigin(headers: Headers, origin: string | null): void {
  headers.append('vary', 'origin');
  if (origin === null) return;
  headers.set('access-control-allow-origin', origin);
  headers.set('access-control-allow-credentials', 'true');
}
