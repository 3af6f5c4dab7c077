import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import {
  type FastifyPluginAsyncZod,
  hasZodFastifySchemaValidationErrors,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod';
import { equalSecrets } from '../base/equal-secrets.ts';
import { fieldErrors } from '../base/problem.ts';
import { requestIdFrom } from '../base/request-id.ts';
import { SitesRepoError } from '../sites-repo/errors.ts';
import type { DaemonDeps } from './deps.ts';
import { editRoutes } from './edits.ts';
import { ProvisionerProblem } from './errors.ts';
import { hostReportRoutes } from './host-report.ts';
import { planRoutes } from './plans.ts';
import { statusRoutes } from './statuses.ts';

const BODY_LIMIT = 256 * 1024;

/** The provisioner's HTTP interface (docs/http.md). Never listens and never reads the environment. */
export function buildDaemon(deps: DaemonDeps): FastifyInstance {
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    // Errors of the router itself, such as a URL that it can't parse. They occur before every hook.
    frameworkErrors: answerProblem,
    ...(deps.logger === undefined ? {} : { loggerInstance: deps.logger }),
    genReqId: ({ headers }) => requestIdFrom(headers),
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(answerProblem);
  // Some clients always send the JSON content type. With an empty body, the route decides whether it needs one.
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) =>
    body === '' ? done(null, undefined) : parseJson(request, body, done),
  );
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.register(guardedRoutes(deps));
  return app;
}

/** Everything that needs the secret: all routes but `/healthz`, and unknown addresses. */
function guardedRoutes(deps: DaemonDeps): FastifyPluginAsyncZod {
  return async (app) => {
    app.addHook('onRequest', async ({ headers }) => {
      if (deps.secrets.length === 0) throw new ProvisionerProblem('secret_not_configured');
      const given = headers['x-secret'];
      if (typeof given !== 'string' || !deps.secrets.some((secret) => equalSecrets(secret, given))) {
        throw new ProvisionerProblem('wrong_secret');
      }
    });
    app.setNotFoundHandler(() => {
      throw new ProvisionerProblem('not_found');
    });
    await app.register(statusRoutes(deps));
    await app.register(editRoutes(deps));
    await app.register(planRoutes(deps));
    await app.register(hostReportRoutes(deps));
  };
}

function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toProblem(error);
  if (known.code === 'internal') request.log.error({ err: error }, 'unexpected error');
  reply.header('x-request-id', request.id);
  const body = JSON.stringify(known.body(request.id));
  return reply.status(known.status).type('application/problem+json').send(body);
}

function toProblem(error: unknown): ProvisionerProblem {
  if (error instanceof ProvisionerProblem) return error;
  if (error instanceof SitesRepoError)
    return new ProvisionerProblem('sites_repo_unavailable', { cause: error });
  if (hasZodFastifySchemaValidationErrors(error)) {
    const issues = error.validation.map(({ instancePath, message = '' }) => ({
      path: instancePath.split('/').slice(1),
      message,
    }));
    return new ProvisionerProblem('malformed_request', { errors: fieldErrors(issues), cause: error });
  }
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500;
  if (status === 413) return new ProvisionerProblem('body_too_large');
  if (typeof status === 'number' && status < 500) return new ProvisionerProblem('malformed_request');
  return new ProvisionerProblem('internal', { cause: error });
}
