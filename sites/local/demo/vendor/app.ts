import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { readGtmQuery, renderGtmScript } from '../tag-server/gtm-script.ts';
import { acceptAnyBody, PRIVATE, queryOf, sendNotFound, sendScript } from './answer.ts';
import {
  type ContainerOf,
  defaultContainer,
  renderDestination,
  renderGoogleTag,
  renderTags,
} from './google-tag.ts';
import { placeInHeaders } from './place.ts';

interface VendorOptions {
  /** Which web containers exist. Default: every well-formed id that does not begin with `GTM-UNKNOWN`. */
  readonly isKnown?: (id: string) => boolean;
  /** What a web container has. Default: a Google tag and a destination, without a server container. */
  readonly containerOf?: ContainerOf;
  /** The base URL of the further scripts that a script loads. Default: that of the request. */
  readonly publicUrl?: string;
  /** Where hits are sent if there is no server container. Default: `publicUrl`. */
  readonly analyticsUrl?: string;
  /**
   * Returns the place of an address (`US-CA`); `null`: unknown. If set, the requester's address alone decides the place.
   * Default: the place that the request's headers state, under the names of Google's tag gateway (docs/facts.md).
   */
  readonly placeOfAddress?: (address: string) => string | null;
}

const GTM_ID = /^GTM-(?!UNKNOWN)[A-Z0-9]{4,}$/;
/** The ids of other products, which `gtag/js` and `gtag/destination` load. */
const GTAG_ID = /^(?:G|AW|DC|GT)-[A-Z0-9]{4,}$/;

/**
 * A stand-in for www.googletagmanager.com that sends the same headers (docs/facts.md, "Web container script"), and for
 * the collection of hits at www.google-analytics.com.
 */
export function buildVendor({
  isKnown = (id) => GTM_ID.test(id),
  containerOf = defaultContainer,
  publicUrl,
  analyticsUrl = publicUrl,
  placeOfAddress,
}: VendorOptions = {}): FastifyInstance {
  const app = fastify();
  const placeOf = (request: FastifyRequest) =>
    placeOfAddress === undefined ? placeInHeaders(request) : placeOfAddress(request.ip);
  const ownUrl = ({ protocol, host }: FastifyRequest) => `${protocol}://${host}`;

  async function containerScript(request: FastifyRequest): Promise<string> {
    const gtm = readGtmQuery(queryOf(request));
    const container = await containerOf(gtm.id);
    const tags = renderTags(container, { base: publicUrl ?? ownUrl(request), dataLayer: gtm.dataLayer });
    const { consentDefaults = [] } = container;
    return renderGtmScript({ ...gtm, servedBy: 'vendor', place: placeOf(request), consentDefaults, tags });
  }

  app.get('/gtm.js', async (request, reply) => {
    if (!isKnown(readGtmQuery(queryOf(request)).id)) return sendNotFound(reply);
    return await sendScript(request, reply, await containerScript(request));
  });
  app.get('/gtag/js', async (request, reply) => {
    const { id, dataLayer } = readGtmQuery(queryOf(request));
    if (isKnown(id)) return await sendScript(request, reply, await containerScript(request));
    if (!GTAG_ID.test(id)) return sendNotFound(reply);
    const tag = renderGoogleTag(id, dataLayer, analyticsUrl ?? ownUrl(request));
    return await sendScript(request, reply, tag);
  });
  app.get('/gtag/destination', async (request, reply) => {
    const { id } = readGtmQuery(queryOf(request));
    return GTAG_ID.test(id) ? await sendScript(request, reply, renderDestination(id)) : sendNotFound(reply);
  });
  app.get('/ns.html', (request, reply) => {
    if (!isKnown(queryOf(request).get('id') ?? '')) return sendNotFound(reply);
    return reply
      .headers({ 'cache-control': PRIVATE, server: 'Google Tag Manager' })
      .type('text/html; charset=utf-8')
      .send('<!doctype html><title>ns</title>');
  });
  acceptAnyBody(app);
  app.post('/g/collect', (request, reply) =>
    reply
      .headers({
        'access-control-allow-origin': request.headers.origin ?? '*',
        'access-control-allow-credentials': 'true',
        'cross-origin-resource-policy': 'cross-origin',
        'cache-control': 'no-cache, no-store, must-revalidate',
      })
      .code(204)
      .send(),
  );
  app.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  return app;
}
