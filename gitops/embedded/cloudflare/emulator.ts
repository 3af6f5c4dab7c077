import fastify, { type FastifyInstance } from 'fastify';
import { z } from 'zod';
import { equalSecrets } from '../../base/http/equal-secrets.ts';
import { accountEndpoints } from './account.ts';
import { type CallLimit, callLimiter } from './api/call-limit.ts';
import { createContext, type EmulatorDeps, noRoute } from './api/context.ts';
import { ApiError, failure } from './api/envelope.ts';
import { dnsEndpoints } from './dns/endpoints.ts';
import { kvBulkEndpoints } from './kv/bulk.ts';
import { namespaceEndpoints } from './kv/namespaces.ts';
import { kvValueEndpoints } from './kv/values.ts';
import { objectEndpoints } from './objects.ts';
import { routeEndpoints } from './workers/routes.ts';
import { scriptEndpoints } from './workers/scripts.ts';
import { zoneEndpoints } from './zones.ts';

/** Path of the real API under its host. Clients have it in their base URL. */
export const API_PREFIX = '/client/v4';
/** The limit of a bulk write: 100 MB. */
const BODY_LIMIT = 100 * 1024 * 1024;
/** High enough never to be reached on one machine; the headers are sent all the same. */
const LOCAL_LIMIT: CallLimit = { calls: 1_000_000, windowSeconds: 300 };

/** Cloudflare's API over local state, with the contract of its OpenAPI document, its error codes, limits and paging. */
export function buildEmulator(deps: EmulatorDeps): FastifyInstance {
  const { now = () => new Date(), limit = LOCAL_LIMIT } = deps;
  const app = fastify({ bodyLimit: BODY_LIMIT, routerOptions: { maxParamLength: 4096 } });

  const context = createContext(deps, now);

  app.removeAllContentTypeParsers();
  // Clients send a DELETE with a JSON content type and no body.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') return done(null, undefined);
    try {
      done(null, JSON.parse(body.toString()));
    } catch (cause) {
      done(
        new ApiError('malformedBody', 'The request body is not JSON.', [
          { code: 9207, message: String(cause) },
        ]),
      );
    }
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  const count = callLimiter(limit, now);
  app.addHook('onRequest', async (request, reply) => {
    const { allowed, headers } = count();
    reply.headers(headers);
    if (!allowed) {
      throw new ApiError('rateLimited', 'Please wait and consider throttling your request speed');
    }
    if (request.routeOptions.url !== `${API_PREFIX}/ips`)
      authenticate(request.headers.authorization, deps.token);
  });
  app.setNotFoundHandler(({ url }) => {
    throw noRoute(url);
  });
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof ApiError) return reply.status(error.status).send(error.body);
    if (error instanceof z.ZodError)
      return reply.status(400).send(failure({ code: 9207, message: 'Invalid parameters.' }));
    const status = z.object({ statusCode: z.number().min(400).max(499) }).safeParse(error);
    if (status.success) {
      return reply.status(status.data.statusCode).send(failure({ code: 9207, message: 'Invalid request.' }));
    }
    return reply.status(500).send(failure({ code: 10013, message: 'workers.api.error.unknown' }));
  });

  app.register(
    async (api) => {
      for (const endpoints of [
        accountEndpoints,
        zoneEndpoints,
        dnsEndpoints,
        routeEndpoints,
        scriptEndpoints,
        namespaceEndpoints,
        kvValueEndpoints,
        kvBulkEndpoints,
        objectEndpoints,
      ]) {
        endpoints(api, context);
      }
    },
    { prefix: API_PREFIX },
  );
  return app;
}

function authenticate(header: string | undefined, token: string): void {
  const sent = /^Bearer (\S+)$/.exec(header ?? '')?.[1];
  if (sent === undefined) {
    throw new ApiError('invalidHeader', 'Invalid request headers', [
      { code: 6111, message: 'Invalid format for Authorization header' },
    ]);
  }
  if (!equalSecrets(sent, token)) throw new ApiError('unauthenticated', 'Authentication error');
}
