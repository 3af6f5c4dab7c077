import type { Site } from '../../plugins/contract.ts';
import { EdgeError } from './errors.ts';
import { isUnder } from './hops.ts';

/** Chromium's cap, in seconds; others take it too. */
const PREFLIGHT_LIFE = 7200;

/**
 * The origin that may read this answer: one whose host is an active domain of the site or under one. `null` without an
 * `origin` header; throws `origin_not_allowed` for any other, and for the opaque origin `null`.
 */
export function allowedOrigin(request: Request, site: Site): string | null {
  const origin = request.headers.get('origin');
  if (origin === null) return null;
  const url = URL.parse(origin);
  const known =
    url?.origin === origin &&
    /^https?:/.test(origin) &&
    site.domains.some(({ domain }) => isUnder(url.hostname, domain));
  if (!known) throw new EdgeError('origin_not_allowed', { headers: { vary: 'origin' } });
  return origin;
}

/** The answer to a preflight. */
export function preflight(methods: readonly string[]): Response {
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': 'content-type, x-gtm-server-preview',
      'access-control-max-age': String(PREFLIGHT_LIFE),
    },
  });
}

/** Lets the origin read the answer, with credentials. An answer that depends on the origin says so either way. */
export function shareWith(headers: Headers, origin: string | null): void {
  headers.append('vary', 'origin');
  if (origin === null) return;
  headers.set('access-control-allow-origin', origin);
  headers.set('access-control-allow-credentials', 'true');
}
