import type { FastifyInstance } from 'fastify';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const ALLOWED =
  'authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, x-request-id, x-tagyard-plan';
const EXPOSED = 'etag, location, retry-after, x-request-id';
const PREFLIGHT_SECONDS = 600;

/**
 * Lets pages of the named origins read answers (the Fetch standard, CORS). They authenticate by a token; answers to
 * requests with cookies stay unreadable for them.
 */
export function registerCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', async (request, reply) => {
    reply.header('vary', 'origin');
    const { origin } = request.headers;
    if (origin === undefined || !origins.includes(origin)) return;
    reply.header('access-control-allow-origin', origin);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      reply.header('access-control-expose-headers', EXPOSED);
      return;
    }
    reply.header('access-control-allow-methods', METHODS);
    reply.header('access-control-allow-headers', ALLOWED);
    reply.header('access-control-max-age', PREFLIGHT_SECONDS);
    await reply.status(204).send();
  });
}
