import { forwardFunction } from './fetch-function.ts';
import type { Forwarder } from './forwarder.ts';
import { comment, preamble } from './parts.ts';

/** A redirect in netlify.toml can't filter cookies, so the snippet is an edge function. */
export function netlifySnippet(forwarder: Forwarder): string {
  return `${comment('//', [
    ...preamble(forwarder, 'Save it as netlify/edge-functions/tagyard.js.'),
  ])}${forwardFunction(forwarder, { isDecoding: true })}
export const config = { path: '${forwarder.path}/*' };

export default (request, { ip, geo }) =>
  forward(request, ip, { country: geo?.country?.code, region: geo?.subdivision?.code });
`;
}
