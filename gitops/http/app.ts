import { createHash, timingSafeEqual } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { ShownSite, SiteStatus } from '../report/report.ts';
import { SitesRepoError } from '../sites-repo/sites-repo.ts';
import type { DaemonDeps } from './deps.ts';
import { editRoutes } from './edits.ts';
import { ProblemError, problem } from './errors.ts';
import { hostReportRoutes } from './host-report.ts';
import { renderMetrics } from './metrics.ts';
import { planRoutes } from './plans.ts';

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const BODY_LIMIT = 256 * 1024;

/** The provisioner's HTTP interface (`http.md`); never listens and never reads the environment. */
export function buildDaemon(deps: DaemonDeps): FastifyInstance {
  const { repo, loop, operations } = deps;
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    // What the router itself can't read comes before every hook.
    frameworkErrors: answerProblem,
    ...(deps.logger === undefined ? {} : { loggerInstance: deps.logger }),
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : crypto.randomUUID();
    },
  });

  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    if (request.url.split('?')[0] === '/healthz') return;
    if (deps.secrets.length === 0) throw new ProblemError('secret_not_configured');
    const given = request.headers['x-secret'];
    if (typeof given !== 'string' || !deps.secrets.some((secret) => equal(secret, given))) {
      throw new ProblemError('wrong_secret');
    }
  });

  app.setNotFoundHandler(() => {
    throw new ProblemError('not_found');
  });
  app.setErrorHandler(answerProblem);
  // A client that always says JSON may send none: no body, which is for the route to refuse where it needs one.
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) =>
    body === '' ? done(null, undefined) : parseJson(request, body, done),
  );

  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    return reply
      .status(loop.ready ? 200 : 503)
      .send({ status: loop.ready ? 'ready' : 'not_ready', revision: loop.revision });
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4').send(await renderMetrics(loop, operations)),
  );

  app.get<{ Params: { id: string } }>('/operations/:id', async (request) => {
    const operation = operations.get(request.params.id);
    if (operation === null) throw new ProblemError('unknown_operation');
    return operation;
  });
  /** Why no pass can plan, and so nobody knows what is asked now; what was applied stays, and stays `ready`. */
  const unknown = () =>
    loop.lastError === null ? null : `nothing newer is known: ${loop.lastError.message}`;
  const shown = (status: SiteStatus): ShownSite => ({
    ...status,
    message: [status.message, unknown() ?? ''].filter(Boolean).join('; '),
    resources: [...status.resources, ...(deps.certificatesOf?.(status.site) ?? [])],
  });
  app.get('/sites', async () => ({
    revision: loop.revision,
    problem: unknown(),
    sites: loop.statuses().map(shown),
  }));
  app.get<{ Params: { site: string } }>('/sites/:site', async (request) => {
    const status = loop.status(request.params.site);
    if (status === null) throw new ProblemError('unknown_site');
    return { ...shown(status), history: await repo.history(status.site, 20) };
  });

  editRoutes(app, deps);
  planRoutes(app, deps);
  hostReportRoutes(app, deps);
  return app;
}

function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toProblem(error);
  if (known.code === 'internal') request.log.error({ err: error }, 'unexpected error');
  const { status, body } = problem(known, request.id);
  reply.header('x-request-id', request.id);
  return reply.status(status).type('application/problem+json').send(JSON.stringify(body));
}

function toProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof SitesRepoError)
    return new ProblemError('sites_repo_unavailable', undefined, {}, { cause: error });
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500;
  if (status === 413) return new ProblemError('body_too_large');
  if (typeof status === 'number' && status < 500) return new ProblemError('malformed_request');
  return new ProblemError('internal', undefined, {}, { cause: error });
}

/** Compared over digests of equal length, so that neither content nor length shows in the time it takes. */
function equal(secret: string, given: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(secret), digest(given));
}
