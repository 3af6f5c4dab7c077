import { forwardFunction } from './fetch-function.ts';
import type { Forwarder } from './forwarder.ts';
import { comment, preamble } from './parts.ts';

/** A rewrite in vercel.json can't filter cookies, so the snippet is a routing middleware. Vercel itself sets
 * `x-real-ip` and the headers with the visitor's place. */
export function vercelSnippet(forwarder: Forwarder): string {
  return `${comment('//', [
    ...preamble(
      forwarder,
      'Save it as middleware.js in the root of the project. For Next.js, use its own snippet.',
    ),
  ])}${forwardFunction(forwarder, { isDecoding: true })}
export const config = { matcher: '${forwarder.path}/:path*' };

export default function middleware(request) {
  const { headers } = request;
  return forward(request, headers.get('x-real-ip'), {
    country: headers.get('x-vercel-ip-country'),
    region: headers.get('x-vercel-ip-country-region'),
  });
}
`;
}
