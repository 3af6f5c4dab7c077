import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, cookieNames } from './parts.ts';

/**
 * JavaScript that forwards a `Request` by `fetch`, for platforms whose functions get one. `forward` takes the visitor's
 * address and place, as far as the platform knows them. `isDecoding`: the platforms' `fetch`
 * decompresses a body and keeps its `content-encoding`, so that the edge must not compress.
 */
export function forwardFunction(
  { edge, token, cookies }: Forwarder,
  { isDecoding }: { readonly isDecoding: boolean },
): string {
  return `const EDGE = '${edge.origin}';
const TOKEN = '${token}';
// Only these cookies are passed on.
const COOKIES = /^(?:${cookieNames(cookies)})=/;

// Headers that the edge must not get as the visitor sent them.
const NOT_PASSED = [
  ...['authorization', 'connection', 'cookie', 'expect', 'host', 'keep-alive', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'x-tagyard-country', 'x-tagyard-region', 'x-tagyard-visitor'],
];

async function forward(request, visitor, place = {}) {
  const url = new URL(request.url);
  const headers = new Headers(request.headers);
  const cookies = (headers.get('cookie') ?? '').split(/; */).filter((pair) => COOKIES.test(pair));
  for (const name of NOT_PASSED) headers.delete(name);
  if (cookies.length > 0) headers.set('cookie', cookies.join('; '));
${isDecoding ? "  headers.set('accept-encoding', 'identity');\n" : ''}  headers.set('x-tagyard-forwarder-token', TOKEN);
  headers.set('x-tagyard-host', request.headers.get('host') ?? url.host);
  const isTls = url.protocol === 'https:' || request.headers.get('x-forwarded-proto') === 'https';
  headers.set('x-tagyard-scheme', isTls ? 'https' : 'http');
  if (visitor) headers.set('x-tagyard-visitor', visitor);
  if (place.country) headers.set('x-tagyard-country', place.country);
  if (place.region) headers.set('x-tagyard-region', place.region);
  try {
    return await fetch(EDGE + url.pathname + url.search, {
      method: request.method,
      headers,
      body: request.body,
      duplex: 'half',
      redirect: 'manual',
      cache: 'no-store',
      signal: AbortSignal.timeout(${ANSWER_SECONDS * 1000}),
    });
  } catch {
    return new Response(null, { status: 502 });
  }
}
`;
}
