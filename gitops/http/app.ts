import fastify, { type FastifyInstance } from 'fastify';
import { type FastifyPluginAsyncZod, serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import { answerEarlyFaults, clientErrorHandler, RECEIVING } from '../../base/http/client-errors.ts';
import { otherMethods } from '../../base/http/other-methods.ts';
import { type ProblemService, problemAnswer } from '../../base/http/problem-answer.ts';
import { requestIdFrom } from '../../base/http/request-id.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { containerLogRoutes } from './container-logs.ts';
import type { DaemonDeps } from './deps.ts';
import { editRoutes } from './edits.ts';
import { type ProvisionerErrorCode, ProvisionerProblem } from './errors.ts';
import { healthRoutes } from './health.ts';
import { hostReportRoutes } from './host-report.ts';
import { planRoutes } from './plans.ts';
import { profileRoutes } from './profiles.ts';
import { PUSH_WEBHOOK, pushWebhookRoute } from './push-webhook.ts';
import { quotaRoutes } from './quotas.ts';
import { authenticate } from './secrets.ts';
import { statusRoutes } from './statuses.ts';

const BODY_LIMIT = 256 * 1024;

const PROBLEMS: ProblemService<ProvisionerErrorCode> = {
  Problem: ProvisionerProblem,
  SitesRepoError,
  codes: {
    schema: 'malformed_request',
    byStatus: {
      408: 'request_timeout',
      413: 'body_too_large',
      414: 'uri_too_long',
      415: 'malformed_request',
      417: 'expectation_failed',
      431: 'headers_too_large',
    },
    clientError: 'malformed_request',
    tooMany: 'too_many_requests',
    stopping: 'stopping',
    sitesRepo: 'sites_repo_unavailable',
    commitRefused: 'commit_refused',
    internal: 'internal',
  },
  unlogged: ['still_running', 'stopping'],
};
const answerProblem = problemAnswer(PROBLEMS);

/** The provisioner's HTTP interface (docs/http.md). Never listens and never reads the environment. */
export function buildDaemon(deps: DaemonDeps): FastifyInstance {
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    clientErrorHandler: clientErrorHandler(PROBLEMS),
    ...RECEIVING,
    return503OnClosing: false,
    // Errors of the router itself, such as a URL that it can't parse. They occur before every hook.
    frameworkErrors: (error, request, reply) => {
      try {
        authenticate(request, deps);
        answerProblem(error, request, reply);
      } catch (problem) {
        answerProblem(problem, request, reply);
      }
    },
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
    // Also checks requests for unknown paths and methods: without the secret, nothing shows which of them exist.
    if (request.routeOptions.url !== PUSH_WEBHOOK || request.method !== 'POST') {
      authenticate(request, deps);
    }
  });
  answerEarlyFaults(app, PROBLEMS);
  app.setNotFoundHandler(() => {
    throw new ProvisionerProblem('not_found');
  });
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.register(routes(deps));
  return app;
}

/** Everything but `/healthz`. */
function routes(deps: DaemonDeps): FastifyPluginAsyncZod {
  return async (app) => {
    const refuseOthers = otherMethods(app, () => new ProvisionerProblem('method_not_allowed'));
    await app.register(statusRoutes(deps));
    await app.register(editRoutes(deps));
    await app.register(planRoutes(deps));
    await app.register(hostReportRoutes(deps));
    await app.register(profileRoutes(deps));
    await app.register(containerLogRoutes(deps));
    await app.register(healthRoutes(deps));
    await app.register(quotaRoutes(deps));
    await app.register(pushWebhookRoute(deps));
    refuseOthers(app);
  };
}
