import { forwardFunction } from './fetch-function.ts';
import type { Forwarder } from './forwarder.ts';
import { comment, preamble } from './parts.ts';

/**
 * A rewrite rule in next.config.js can't filter cookies, so this is a route handler. It has no segment options, which
 * `cacheComponents` refuses: a handler that reads its request is dynamic in every version.
 */
export function nextjsSnippet(forwarder: Forwarder): string {
  return `${comment('//', [
    ...preamble(forwarder, `Save it as app${forwarder.path}/[...path]/route.js (Next.js 13.4 or newer).`),
    'With `trailingSlash` in next.config.js, set `skipTrailingSlashRedirect` there, too: else each hit is redirected first.',
    'Set VISITOR_HEADER to the header that the platform or proxy before Next.js overwrites with the visitor’s address:',
    'x-real-ip on Vercel. In a list, such as x-forwarded-for, the last address counts: that proxy must add it.',
    'Empty: no address is stated. Next.js itself keeps a header that a visitor sends, so trust none without a proxy.',
  ])}${forwardFunction(forwarder, { isDecoding: true })}
const VISITOR_HEADER = '';

function handler(request) {
  const stated = VISITOR_HEADER === '' ? null : request.headers.get(VISITOR_HEADER);
  return forward(request, stated?.split(',').at(-1)?.trim());
}

export { handler as GET, handler as HEAD, handler as OPTIONS, handler as POST };
`;
}
