import fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { readGtmQuery, renderGtmScript } from '../tag-server/gtm-script.ts';
import { encode } from './encoding.ts';

interface VendorOptions {
  /** Which web containers exist. Default: every well-formed id that does not begin with `GTM-UNKNOWN`. */
  readonly isKnown?: (id: string) => boolean;
}

const GTM_ID = /^GTM-(?!UNKNOWN)[A-Z0-9]{4,}$/;
/** The ids of other products, which `gtag/js` loads. */
const GTAG_ID = /^(?:G|AW|DC|GT)-[A-Z0-9]{4,}$/;
const MAX_AGE_SECONDS = 900;

/** A stand-in for www.googletagmanager.com that sends the same headers (docs/facts.md, "Web container script"). */
export function buildVendor({ isKnown = (id) => GTM_ID.test(id) }: VendorOptions = {}): FastifyInstance {
  const app = fastify();

  app.get('/gtm.js', (request, reply) => {
    const gtm = readGtmQuery(queryOf(request.url));
    if (!isKnown(gtm.id)) return notFound(reply);
    return script(reply, request.headers['accept-encoding'], renderGtmScript({ ...gtm, servedBy: 'vendor' }));
  });
  app.get('/gtag/js', (request, reply) => {
    const gtm = readGtmQuery(queryOf(request.url));
    if (!GTAG_ID.test(gtm.id) && !isKnown(gtm.id)) return notFound(reply);
    return script(reply, request.headers['accept-encoding'], renderGtmScript({ ...gtm, servedBy: 'vendor' }));
  });
  app.get('/ns.html', (request, reply) => {
    if (!isKnown(queryOf(request.url).get('id') ?? '')) return notFound(reply);
    return reply
      .headers({ 'cache-control': `private, max-age=${MAX_AGE_SECONDS}`, server: 'Google Tag Manager' })
      .type('text/html; charset=utf-8')
      .send('<!doctype html><title>ns</title>');
  });
  app.setNotFoundHandler((_request, reply) => notFound(reply));
  return app;
}

/** The query's parameters. Like Google, the callers use the first value of a repeated one. */
function queryOf(url: string): URLSearchParams {
  return new URL(url, 'http://vendor').searchParams;
}

async function script(
  reply: FastifyReply,
  accepted: string | string[] | undefined,
  body: string,
): Promise<FastifyReply> {
  const { coding, bytes } = await encode(body, String(accepted ?? ''));
  return reply
    .headers({
      'content-type': 'application/javascript; charset=UTF-8',
      'cache-control': `private, max-age=${MAX_AGE_SECONDS}`,
      expires: new Date(Date.now() + MAX_AGE_SECONDS * 1000).toUTCString(),
      vary: 'Accept-Encoding',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': 'Cache-Control',
      'cross-origin-resource-policy': 'cross-origin',
      server: 'Google Tag Manager',
      'x-xss-protection': '0',
      'alt-svc': 'h3=":443"; ma=2592000',
      ...(coding === null ? {} : { 'content-encoding': coding }),
    })
    .send(bytes);
}

function notFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).type('text/html; charset=UTF-8').send('<!doctype html><title>Error 404</title>');
}
