import type { IncomingMessage } from 'node:http';

/** The raw value of a request's cookie. */
export function cookieValue(request: IncomingMessage, name: string): string | null {
  for (const pair of (request.headers.cookie ?? '').split(/;\s*/)) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at) === name) return pair.slice(at + 1);
  }
  return null;
}
