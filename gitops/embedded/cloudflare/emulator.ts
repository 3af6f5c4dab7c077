import { timingSafeEqual } from 'node:crypto';
import fastify, { type FastifyInstance } from 'fastify';
import { z } from 'zod';
import { accountEndpoints } from './account.ts';
import { createContext, type EmulatorDeps, noRoute } from './api/context.ts';
import { dnsEndpoints } from './dns/endpoints.ts';
import { ApiError, failure } from './api/envelope.ts';
import { kvBulkEndpoints } from './kv/bulk.ts';
import { kvValueEndpoints } from './kv/values.ts';
import { type CallLimit, callLimiter } from './api/call-limit.ts';
import { namespaceEndpoints } from './kv/namespaces.ts';
import { objectEndpoints } from './objects.ts';
import { routeEndpoints } from './workers/routes.ts';
import { zoneEndpoints } from './zones.ts';

/** Where the real API lives under its host; clients are given it as part of the base URL. */
export const API_PREFIX = '/client/v4';
/** A bulk write holds at most 100 MB. */
const BODY_LIMIT = 100 * 1024 * 1024;
/** Nobody is kept waiting on one's own machine; the headers are there all the same. */
const LOCAL_LIMIT: CallLimit = { calls: 1_000_000, windowSeconds: 300 };

/** Cloudflare's API over local state: the contract of its OpenAPI document, and its codes, limits and paging. */
export function buildEmulator(deps: EmulatorDeps): FastifyInstance {
  const { now = () => new Date(), limit = LOCAL_LIMIT } = deps;
  const app = fastify({ bodyLimit: BODY_LIMIT, routerOptions: { maxParamLength: 4096 } });

  const context = createContext(deps, now);

  app.removeAllContentTypeParsers();
  // A DELETE says JSON and sends nothing: that is no error here.
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
  const [given, wanted] = [Buffer.from(sent), Buffer.from(token)];
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
    throw new ApiError('unauthenticated', 'Authentication error');
  }
}
