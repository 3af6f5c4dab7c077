import fastify, { type FastifyInstance } from 'fastify';
import { z } from 'zod';
import { equalSecrets } from '../../../base/http/equal-secrets.ts';
import { accountEndpoints } from './account.ts';
import { callLimiter } from './api/call-limit.ts';
import { createContext, type EmulatorDeps, noRoute } from './api/context.ts';
import { ApiError, failure } from './api/envelope.ts';
import { readPoints } from './api/points.ts';
import { bucketEndpoints, queueEndpoints } from './bound-stores.ts';
import { dnsEndpoints } from './dns/endpoints.ts';
import { kvBulkEndpoints } from './kv/bulk.ts';
import { namespaceEndpoints } from './kv/namespaces.ts';
import { kvValueEndpoints } from './kv/values.ts';
import { objectEndpoints } from './objects.ts';
import { domainEndpoints } from './workers/custom-domains.ts';
import { routeEndpoints } from './workers/routes.ts';
import { scriptEndpoints } from './workers/scripts.ts';
import { serviceEndpoints } from './workers/services.ts';
import { versionEndpoints } from './workers/versions.ts';
import { zoneEndpoints } from './zones.ts';

/** Path of the real API under its host. Clients have it in their base URL. */
export const API_PREFIX = '/client/v4';
/** The emulator's own control, beside Cloudflare's API: the data points of a dataset, as a list. */
const POINTS = '/control/points/:dataset';
/** The limit of a bulk write: 100 MB. */
const BODY_LIMIT = 100 * 1024 * 1024;

/** Cloudflare's API over local state, with the contract of its OpenAPI document, its error codes, limits and paging. */
export function buildEmulator(deps: EmulatorDeps): FastifyInstance {
  const { now = () => new Date() } = deps;
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

  const { calls } = context.limits;
  const count = callLimiter(calls, now);
  app.addHook('onRequest', async (request, reply) => {
    // The limit is per user: a call without a token has no user and isn't counted.
    if (request.routeOptions.url === `${API_PREFIX}/ips` && !request.headers.authorization) return;
    authenticate(request.headers.authorization, deps.token);
    if (request.routeOptions.url === POINTS) return;
    // In production, management reads objects by R2's S3 interface, which has no such limit.
    if (request.routeOptions.url?.includes('/objects') && !context.limits.countsObjects) return;
    const { allowed, headers } = count();
    reply.headers(headers);
    if (!allowed) {
      const message = `More than ${calls.calls} requests per ${calls.seconds} seconds reached.`;
      throw new ApiError('rateLimited', `${message} Please wait and consider throttling your request speed`);
    }
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
        versionEndpoints,
        serviceEndpoints,
        domainEndpoints,
        namespaceEndpoints,
        kvValueEndpoints,
        kvBulkEndpoints,
        objectEndpoints,
        bucketEndpoints,
        queueEndpoints,
      ]) {
        endpoints(api, context);
      }
    },
    { prefix: API_PREFIX },
  );
  app.get<{ Params: { dataset: string } }>(POINTS, async ({ params }) => readPoints(deps.db, params.dataset));
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
