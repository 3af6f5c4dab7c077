import type { IncomingMessage } from 'node:http';

/** The value of a request's cookie, as sent. */
export function cookieValue(request: IncomingMessage, name: string): string | null {
  for (const pair of (request.headers.cookie ?? '').split('; ')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at) === name) return pair.slice(at + 1);
  }
  return null;
}
