import { forwardFunction } from './fetch-function.ts';
import type { Forwarder } from './forwarder.ts';
import { comment, preamble } from './parts.ts';

/**
 * Cloudflare sets `cf-connecting-ip` itself. In a subrequest to another zone, it would be the worker's own address, so
 * the visitor's is forwarded by a header of our own.
 */
export function cloudflareWorkerSnippet(forwarder: Forwarder): string {
  const { domain, path } = forwarder;
  return `${comment('//', [
    ...preamble(forwarder, 'A module worker; it needs a compatibility date of 2024-11-11 or later.'),
    `Set these routes in the zone, for hosts with pages: ${domain}${path}/* and *.${domain}${path}/*.`,
  ])}${forwardFunction(forwarder, { isDecoding: false })}
export default {
  fetch(request) {
    const place = { country: request.cf?.country, region: request.cf?.regionCode };
    return forward(request, request.headers.get('cf-connecting-ip'), place);
  },
};
`;
}
