import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { request as requestOverTls } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { type Exchange, sendAnswer } from './exchange.ts';
import { lookupWithLocalhost } from './lookup.ts';

/** Of one connection only (RFC 9110 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** True for what the processing role hands to its preview server. */
export function isPreviewPath(path: string): boolean {
  return path.endsWith('/gtm') || path.includes('/gtm/');
}

/**
 * Hands a request to the preview server as it is, streaming both ways: `Host` dropped, the original one in
 * `Forwarded`. Only https is spoken; the CA is trusted by `NODE_EXTRA_CA_CERTS`.
 */
export async function handToPreview(exchange: Exchange, previewServerUrl: string): Promise<void> {
  const { request, response, method } = exchange;
  const { host, ...headers } = passable(request.headers);
  const upstream = requestOverTls(`${previewServerUrl}${request.url ?? '/'}`, {
    method,
    headers: { ...headers, forwarded: `host=${String(host ?? '')}` },
    lookup: lookupWithLocalhost,
  });
  upstream.on('response', (incoming) => {
    response.writeHead(incoming.statusCode ?? 502, passable(incoming.headers));
    // The caller sees a cut-off answer as such; there is nobody left to tell.
    pipeline(incoming, response).catch(() => response.destroy());
  });
  const failed = new Promise<void>((resolve) => {
    upstream.on('error', (error) => {
      console.error(`Preview server request failed: ${error.message}`);
      if (response.headersSent) response.destroy();
      else sendAnswer(exchange, 500, 'text/plain', 'Make sure the PREVIEW_SERVER_URL is set correctly.');
      resolve();
    });
    upstream.on('response', () => resolve());
  });
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
  await failed;
}

function passable(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
}
