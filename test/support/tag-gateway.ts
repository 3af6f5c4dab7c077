import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { readGtmQuery, renderGtmScript } from '../../sites/local/demo/tag-server/gtm-script.ts';
import { acceptAnyBody, queryOf, sendNotFound, sendScript } from '../../sites/local/demo/vendor/answer.ts';
import {
  type ContainerOf,
  defaultContainer,
  renderDestination,
  renderGoogleTag,
  renderTags,
} from '../../sites/local/demo/vendor/google-tag.ts';
import { placeInHeaders } from '../../sites/local/demo/vendor/place.ts';

interface GatewayOptions {
  /** The web container whose host this is: `<id>.fps.goog`, in lower case. */
  readonly id: string;
  /** Default: `defaultContainer`. */
  readonly containerOf?: ContainerOf;
}

/** The measurement path: one segment of letters and digits, chosen by the site. */
const PATH = '/:path(^[A-Za-z0-9]{1,100}$)';

/**
 * A stand-in for one host of Google's tag gateway (docs/facts.md, Tag gateway). Its scripts send their own requests to the
 * host that served them, below the measurement path with which they were requested.
 */
export function buildGateway({ id, containerOf = defaultContainer }: GatewayOptions): FastifyInstance {
  const app = fastify();
  const pathOf = ({ params }: FastifyRequest) => `/${(params as { path: string }).path}`; // in every route

  // Google lets shared caches keep this answer. A server that forwards the path must nevertheless not cache it.
  app.get(`${PATH}/healthy`, (_request, reply) =>
    reply.header('cache-control', 'public').type('text/plain').send('ok'),
  );
  app.get(`${PATH}/`, async (request, reply) => {
    const query = queryOf(request);
    if (query.get('validate_geo') === 'healthy') {
      const isStated = placeInHeaders(request)?.includes('-') ?? false;
      return reply
        .code(isStated ? 200 : 400)
        .header('cache-control', 'public')
        .type('text/plain')
        .send(isStated ? 'ok' : 'no geography');
    }
    const gtm = readGtmQuery(query);
    if (gtm.id !== '' && gtm.id !== id) return sendNotFound(reply);
    const container = await containerOf(id);
    const { consentDefaults = [] } = container;
    const tags = renderTags(container, { base: pathOf(request), dataLayer: gtm.dataLayer });
    const place = placeInHeaders(request);
    const served = { ...gtm, id, servedBy: 'gateway', place, consentDefaults, tags };
    return await sendScript(request, reply, renderGtmScript(served));
  });
  app.get(`${PATH}/gtag/js`, async (request, reply) => {
    const { id: tag, dataLayer } = readGtmQuery(queryOf(request));
    return await sendScript(request, reply, renderGoogleTag(tag, dataLayer, pathOf(request)));
  });
  app.get(`${PATH}/gtag/destination`, async (request, reply) =>
    sendScript(request, reply, renderDestination(readGtmQuery(queryOf(request)).id)),
  );
  acceptAnyBody(app);
  app.post(`${PATH}/g/collect`, (_request, reply) => reply.code(204).send());
  app.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  return app;
}
