import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type Exchange, sendAnswer } from './exchange.ts';
import { lookupDnsFirst } from './lookup.ts';
import { loadHttps } from './node/modules.ts';

/** Headers of one connection, which a proxy must not forward (RFC 9110 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** True for the paths that the processing role forwards to its preview server. */
export function isPreviewPath(path: string): boolean {
  return path.endsWith('/gtm') || path.includes('/gtm/');
}

/**
 * Forwards a request to the preview server and streams both bodies. Of the end-to-end headers, only `Host` is dropped;
 * `Forwarded` carries the value of `Host`. The connection is always https; `NODE_EXTRA_CA_CERTS` names the CA.
 */
export async function forwardToPreview(exchange: Exchange, previewServerUrl: string): Promise<void> {
  const { request, response, method } = exchange;
  const { host, ...headers } = endToEnd(request.headers);
  const upstream = loadHttps().request(`${previewServerUrl}${request.url ?? '/'}`, {
    method,
    headers: { ...headers, forwarded: `host=${String(host ?? '')}` },
    lookup: lookupDnsFirst(),
  });
  upstream.on('response', (incoming) => {
    response.writeHead(incoming.statusCode ?? 502, endToEnd(incoming.headers));
    // The response has begun, so a failure can only be shown by cutting the connection.
    pipeline(incoming, response).catch(() => response.destroy());
  });
  const failed = new Promise<void>((resolve) => {
    upstream.on('error', (error) => {
      console.error(`Preview server request failed: ${error.message}`);
      if (response.headersSent) response.destroy();
      else sendAnswer(exchange, 500, { body: 'Make sure the PREVIEW_SERVER_URL is set correctly.' });
      resolve();
    });
    upstream.on('response', () => resolve());
  });
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
  await failed;
}

function endToEnd(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
}
