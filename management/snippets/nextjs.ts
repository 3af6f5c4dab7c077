import { forwardFunction } from './fetch-function.ts';
import type { Forwarder } from './forwarder.ts';
import { comment, preamble } from './parts.ts';

/** A rewrite of next.config.js can't filter cookies: this is a route handler. */
export function nextjsSnippet(forwarder: Forwarder): string {
  return `${comment('//', [
    ...preamble(forwarder, `Save it as app${forwarder.path}/[...path]/route.js (Next.js 13.4 or newer).`),
    'The visitor is the last address of x-forwarded-for: the one that Next.js, Vercel or your own proxy has added.',
  ])}${forwardFunction(forwarder, { isDecoding: true })}
function handler(request) {
  return forward(request, request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim());
}

export const dynamic = 'force-dynamic';
export { handler as GET, handler as HEAD, handler as OPTIONS, handler as POST };
`;
}
