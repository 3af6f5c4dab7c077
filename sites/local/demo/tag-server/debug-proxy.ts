import { pipeline } from 'node:stream/promises';
import { cookieValue } from './cookies.ts';
import { type Exchange, sendAnswer } from './exchange.ts';
import { lookupDnsFirst } from './lookup.ts';
import { http, loadHttps } from './node/modules.ts';
import type { TagServerSettings } from './settings.ts';

export type DebugSources = Pick<TagServerSettings, 'upstream'>;

const COOKIES = ['gtm_auth', 'gtm_debug', 'gtm_preview'] as const;

/**
 * Forwards `…/gtm/debug/<rest>` to Google as `/debug/<rest>`. Only the method and the body of the request are
 * forwarded; below `/debug/api/`, also its three debug cookies.
 */
export async function debugResource(exchange: Exchange, { upstream }: DebugSources): Promise<void> {
  const { request, response, method } = exchange;
  const url = request.url ?? '/';
  const rest = url.slice(url.indexOf('/gtm/debug/') + '/gtm'.length);
  const cookie = rest.startsWith('/debug/api/')
    ? COOKIES.map((name) => `${name}=${cookieValue(request, name) ?? ''}`).join('; ')
    : null;
  if (upstream === null) {
    // Here the stand-in answers in place of Google, and shows what Google would have got.
    const body = JSON.stringify({ method, url: rest, cookie });
    return sendAnswer(exchange, 200, { type: 'application/json', body });
  }
  const { request: send } = upstream.startsWith('https:') ? loadHttps() : http;
  const { promise, resolve } = Promise.withResolvers<void>();
  const forwarded = send(`${upstream}${rest}`, {
    method,
    headers: cookie === null ? {} : { cookie },
    lookup: lookupDnsFirst(),
  });
  forwarded.on('response', (incoming) => {
    response.writeHead(incoming.statusCode ?? 502, incoming.headers);
    // The response has begun, so a failure can only be shown by cutting the connection.
    pipeline(incoming, response).then(resolve, () => {
      response.destroy();
      resolve();
    });
  });
  forwarded.on('error', (error) => {
    console.error(`The request for ${rest} failed: ${error.message}`);
    if (response.headersSent) response.destroy();
    else sendAnswer(exchange, 500);
    resolve();
  });
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
  await promise;
}
