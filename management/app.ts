import { randomUUID } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import {
  hasZodFastifySchemaValidationErrors,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod';
import { SitesRepoError } from '../gitops/sites-repo/sites-repo.ts';
import { registerAudit } from './audit.ts';
import { changesRoutes } from './containers/changes.routes.ts';
import { containersRoutes } from './containers/containers.routes.ts';
import type { Context } from './context/context.ts';
import { fieldErrors, ProblemError, problem } from './http/errors.ts';
import { registerHealth } from './health.routes.ts';
import { buildLimits } from './http/limits.ts';
import { membersRoutes } from './members/members.routes.ts';
import { LONGEST_SUBJECT } from './members/members.schema.ts';
import { registerMetrics } from './metrics.ts';
import { registerOpenApi } from './http/openapi.ts';
import { followSteps } from './operations/follow.steps.ts';
import { keepForgetting } from './containers/forget-keys.ts';
import { provisionSteps } from './operations/provision.steps.ts';
import { Runner } from './operations/runner.ts';
import { RequestLog } from './http/request-log.ts';
import { registerSecurityHeaders } from './http/security-headers.ts';
import { HostWatch } from './sites/host-watch.ts';
import { Projection } from './sites/projection.ts';
import { verificationRoutes } from './verification/verification.routes.ts';

const BODY_LIMIT = 128 * 1024;
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** Members of log records that may hold secrets, wherever somebody puts a request or a body into one. */
const REDACTED = ['authorization', 'containerConfigB64', 'containerConfig', 'x-secret'].flatMap((name) => [
  `["${name}"]`,
  `*["${name}"]`,
  `*.*["${name}"]`,
]);

export interface ManagementDeps extends Omit<Context, 'log'> {
  /** Level of pino's, and where lines go if not to standard output. */
  readonly logger: { readonly level: string; readonly stream?: { write(line: string): void } };
}

export interface Management {
  readonly app: FastifyInstance;
  /** Follows operations and the sites repository until the signal; resolves when all is put down. */
  follow(signal: AbortSignal): Promise<void>;
}

/** The management API (`http.md`); never listens and never reads the environment. */
export async function buildManagement(deps: ManagementDeps): Promise<Management> {
  const { logger, ...rest } = deps;
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    // The API listens on loopback, behind a proxy: its word on the caller's address counts, and nobody else's.
    trustProxy: 'loopback',
    logger: { ...logger, redact: REDACTED },
    logController: new RequestLog(),
    routerOptions: { maxParamLength: LONGEST_SUBJECT },
    // What the router itself can't read comes before every hook.
    frameworkErrors: answerProblem,
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : randomUUID();
    },
  });
  const context: Context = { ...rest, log: app.log };
  const runner: Runner = new Runner(context, { ...provisionSteps(context), ...followSteps(context) });
  const projection = new Projection(context, () => runner.wake());
  const hostWatch = new HostWatch(context);

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.setNotFoundHandler(() => {
    throw new ProblemError('not_found');
  });
  app.setErrorHandler(answerProblem);

  registerSecurityHeaders(app);
  const limits = await buildLimits(app, context.settings.limits);
  await registerOpenApi(app);
  registerMetrics(app, context);
  registerHealth(app, context);
  app.decorateRequest('caller', null);
  await app.register(async (api) => {
    api.addHook('onRequest', limits.address);
    api.addHook('onRequest', async (request) => {
      request.caller = await context.authenticate(request.headers.authorization);
    });
    api.addHook('onRequest', limits.subject);
    registerAudit(api, context.db);
    await api.register(containersRoutes(context, runner, projection));
    await api.register(changesRoutes(context, projection));
    await api.register(verificationRoutes(context));
    await api.register(membersRoutes(context));
  });
  await app.ready();

  return {
    app,
    async follow(signal) {
      await Promise.all([
        runner.run(signal),
        projection.follow(signal),
        hostWatch.run(signal),
        keepForgetting(context, signal),
      ]);
    },
  };
}

function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toProblem(error);
  const body = problem(known, request.id);
  if (body.status >= 500) request.log.error({ err: error }, known.message);
  if (body.status === 401) reply.header('www-authenticate', 'Bearer');
  reply.header('x-request-id', request.id);
  return reply.status(body.status).type('application/problem+json').send(JSON.stringify(body));
}

function toProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof SitesRepoError)
    return new ProblemError('sites_repo_unavailable', undefined, {}, { cause: error });
  if (hasZodFastifySchemaValidationErrors(error)) {
    const issues = error.validation.flatMap(({ keyword, params, instancePath, message = '' }) => {
      const path = instancePath.split('/').slice(1);
      const unknown = keyword === 'unrecognized_keys' && Array.isArray(params.keys) ? params.keys : [null];
      return unknown.map((key) =>
        key === null ? { path, message } : { path: [...path, String(key)].filter(Boolean), message },
      );
    });
    return new ProblemError('invalid_request', undefined, { errors: fieldErrors(issues) }, { cause: error });
  }
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500;
  if (status === 413) return new ProblemError('body_too_large');
  if (status === 415) return new ProblemError('unsupported_media_type');
  if (typeof status === 'number' && status < 500) return new ProblemError('invalid_request');
  return new ProblemError('internal', undefined, {}, { cause: error });
}
