import fastify, { type FastifyInstance } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import { type Clock, systemClock } from '../base/clock.ts';
import { answerEarlyFaults, clientErrorHandler, RECEIVING } from '../base/http/client-errors.ts';
import { jsonExcess } from '../base/http/json-size.ts';
import { otherMethods } from '../base/http/other-methods.ts';
import { type ProblemService, problemAnswer } from '../base/http/problem-answer.ts';
import { requestIdFrom } from '../base/http/request-id.ts';
import { SitesRepoError } from '../sites/repo/errors.ts';
import { LONGEST_SUBJECT } from '../sites/requests/members.ts';
import { registerRights } from './access/rights.ts';
import { collectRoutes, type RouteAccess } from './access/routes.ts';
import { auditRoutes } from './audit/audit.routes.ts';
import { registerAudit } from './audit.ts';
import { bulkRoutes } from './bulk/bulk.routes.ts';
import { checklistRoutes } from './checklist/checklist.routes.ts';
import { consoleRoutes } from './console/console.routes.ts';
import { containerLogs } from './container-logs/container-logs.ts';
import { changesRoutes } from './containers/changes.routes.ts';
import { cloneRoutes } from './containers/clone/clone.routes.ts';
import { containersRoutes } from './containers/containers.routes.ts';
import { domainsRoutes } from './containers/domains.routes.ts';
import { keepForgetting } from './containers/forget-keys.ts';
import { historyRoutes } from './containers/history/history.routes.ts';
import { keepFolding } from './containers/list/keep-folding.ts';
import { listRoutes } from './containers/list/list.routes.ts';
import { loaderTokensRoutes } from './containers/loader-tokens/loader-tokens.routes.ts';
import { settingsRoutes } from './containers/settings/settings.routes.ts';
import { transferRoutes } from './containers/transfer/transfer.routes.ts';
import type { Context } from './context/context.ts';
import { HostRoom } from './context/host-room.ts';
import { isRefusedValue } from './db/refused-value.ts';
import { isUnavailable } from './db/unavailable.ts';
import { AskedHosts } from './domains/asked-hosts.ts';
import { watchDns } from './domains/dns-watch.ts';
import { domainStatesRoutes } from './domains/domain-states.routes.ts';
import { EventHub } from './events/event-hub.ts';
import { eventsRoutes } from './events/events.routes.ts';
import { Handovers } from './handover/handovers.ts';
import { handoverLinksRoutes } from './handover/links.routes.ts';
import { handoverPageRoutes } from './handover/page.routes.ts';
import { registerHealth } from './health.routes.ts';
import { registerCors } from './http/cors.ts';
import { type ManagementErrorCode, ManagementProblem } from './http/errors.ts';
import { buildLimits } from './http/limits.ts';
import { OpenStreams } from './http/open-streams.ts';
import { registerOpenApi } from './http/openapi.ts';
import { registerPages } from './http/pages.ts';
import { describeRequest, RequestLog } from './http/request-log.ts';
import { registerSecurityHeaders, SECURITY_HEADERS } from './http/security-headers.ts';
import { warnOfUntrustedProxy } from './http/untrusted-proxy.ts';
import { registerIdempotency } from './idempotent.ts';
import { registerIfMatch } from './if-match.ts';
import { instanceRoutes } from './instance/routes.ts';
import { registerMetrics } from './metrics.ts';
import { followSteps } from './operations/follow.steps.ts';
import { operationsRoutes } from './operations/operations.routes.ts';
import { provisionSteps } from './operations/provision.steps.ts';
import { Runner } from './operations/runner.ts';
import { OperationWaits } from './operations/waits.ts';
import { pluginsRoutes } from './plugins/plugins.routes.ts';
import { policiesRoutes } from './policies/policies.routes.ts';
import { keepProofs } from './proof/keep.ts';
import { ingestRoutes } from './requests/ingest.routes.ts';
import { LiveRequests } from './requests/live-hub.ts';
import { openSearch } from './requests/open-search.ts';
import { profilesRoutes } from './requests/profiles.routes.ts';
import { RecentRequests } from './requests/recent.ts';
import { requestsRoutes } from './requests/requests.routes.ts';
import { keepPruning } from './retention.ts';
import { rolloutsRoutes } from './rollouts/rollouts.routes.ts';
import { RolloutRunner } from './rollouts/runner.ts';
import { Login } from './session/login.ts';
import { loginRoutes, ownSessionRoutes } from './session/session.routes.ts';
import { HostWatch } from './sites/host-watch.ts';
import { Projection } from './sites/projection.ts';
import { TenantProjection } from './tenants/projection.ts';
import { tenantRoutes } from './tenants/routes.ts';
import { withServiceTokens } from './tokens/authenticate.ts';
import { tokensRoutes } from './tokens/tokens.routes.ts';
import { Collector } from './traffic/collector.ts';
import { trafficRoutes } from './traffic/traffic.routes.ts';
import { usageRoutes } from './traffic/usage.routes.ts';
import { verificationRoutes } from './verification/verification.routes.ts';
import { Deliverer } from './webhooks/deliverer.ts';
import { deliveriesRoutes } from './webhooks/deliveries.routes.ts';
import { webhooksRoutes } from './webhooks/webhooks.routes.ts';

const BODY_LIMIT = 128 * 1024;
/** A server that restarts, or a standby that takes over, needs a few seconds. */
const DATABASE_RETRY_SECONDS = 5;

const PROBLEMS: ProblemService<ManagementErrorCode> = {
  Problem: ManagementProblem,
  SitesRepoError,
  codes: {
    schema: 'invalid_request',
    byStatus: {
      408: 'request_timeout',
      413: 'body_too_large',
      414: 'uri_too_long',
      415: 'unsupported_media_type',
      417: 'expectation_failed',
      431: 'headers_too_large',
    },
    clientError: 'invalid_request',
    tooMany: 'rate_limited',
    stopping: 'stopping',
    sitesRepo: 'sites_repo_unavailable',
    commitRefused: 'commit_refused',
    internal: 'internal',
  },
  unlogged: ['stopping'],
  challenge: 'Bearer',
  headers: SECURITY_HEADERS,
};
const answerProblem = problemAnswer(PROBLEMS);

/** Members of log records that may hold secrets, down to the depth of a logged request or body. */
const REDACTED = [
  'authorization',
  'cookie',
  'set-cookie',
  'logout_token',
  'containerConfigB64',
  'containerConfig',
  'serviceAccount',
  'private_key',
  'privateKey',
  'x-secret',
].flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]);

interface ManagementDeps extends Omit<Context, 'log' | 'clock' | 'room' | 'streams'> {
  /** The names of the checks of the settings that have failed, for `/readyz`. Default: none. */
  readonly findings?: () => readonly string[];
  /** Default: the system's clock. */
  readonly clock?: Clock;
  /** pino's level, and where lines are written if not to standard output. */
  readonly logger: { readonly level: string; readonly stream?: { write(line: string): void } };
}

export interface Management {
  readonly app: FastifyInstance;
  /** What each route behind the token check demands. */
  readonly routes: readonly RouteAccess[];
  /** Follows operations and the sites repository until the signal. Resolves when all work has ended. */
  follow(signal: AbortSignal): Promise<void>;
}

/** The management API (docs/http.md). Never listens and never reads the environment. */
export async function buildManagement(deps: ManagementDeps): Promise<Management> {
  const { logger, findings = () => [], ...rest } = deps;
  const { trustedProxies } = deps.settings;
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    clientErrorHandler: clientErrorHandler(PROBLEMS),
    ...RECEIVING,
    return503OnClosing: false,
    // Only these proxies are trusted to name the caller's address.
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    logger: { ...logger, redact: REDACTED, serializers: { req: describeRequest } },
    logController: new RequestLog(),
    routerOptions: { maxParamLength: LONGEST_SUBJECT },
    // Errors of the router itself, such as a URL that it can't parse. They occur before every hook.
    frameworkErrors: answerProblem,
    genReqId: ({ headers }) => requestIdFrom(headers),
  });
  const { clock = systemClock } = rest;
  const streams = new OpenStreams(app, rest.settings.limits);
  const base = { ...rest, clock, streams, room: new HostRoom(), log: app.log };
  const login = new Login(base);
  const tokens = withServiceTokens({ db: rest.db, clock }, rest.authenticate);
  const context: Context = { ...base, authenticate: login.accept(tokens) };
  const runner: Runner = new Runner(context, { ...provisionSteps(context), ...followSteps(context) });
  const tenants = new TenantProjection(context);
  const projection = new Projection(context, tenants, () => runner.trigger());
  const rollouts = new RolloutRunner(context, projection);
  const hostWatch = new HostWatch(context);
  const hosts = new AskedHosts(context);
  const printed = containerLogs(context);
  const waits = new OperationWaits(context.clock);
  const deliverer = new Deliverer(context);
  const { rawObjects, settings } = context;
  const collector = rawObjects === null ? null : new Collector({ ...context, rawObjects });
  const handovers = new Handovers(context);
  const events = new EventHub(context, {
    onEvent: () => deliverer.trigger(),
    onOperation: (id) => waits.announce(id),
  });
  const recent = new RecentRequests();
  const live = new LiveRequests(context, recent);
  const search = openSearch(context);

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  const parseJson = app.getDefaultJsonParser('error', 'error');
  // Some clients send the JSON content type even without a body. Each route decides whether it needs a body.
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    const excess = jsonExcess(body);
    if (excess !== null) done(new ManagementProblem('invalid_request', { detail: excess }));
    else if (body === '') done(null, undefined);
    else parseJson(request, body, done);
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  answerEarlyFaults(app, PROBLEMS);
  app.setNotFoundHandler(() => {
    throw new ManagementProblem('not_found');
  });
  app.setErrorHandler((error, request, reply) => {
    if (isUnavailable(error)) {
      reply.header('retry-after', DATABASE_RETRY_SECONDS);
      return answerProblem(new ManagementProblem('database_unavailable', { cause: error }), request, reply);
    }
    if (!isRefusedValue(error)) return answerProblem(error, request, reply);
    request.log.warn({ err: error }, 'the database refused a value of the request');
    const detail = 'a value of the request has a character or a time that can’t be stored';
    return answerProblem(new ManagementProblem('invalid_request', { detail }), request, reply);
  });

  warnOfUntrustedProxy(app, trustedProxies);
  registerSecurityHeaders(app);
  registerCors(app, settings.dashboardOrigins);
  const limits = await buildLimits(app, settings.limits);
  await registerOpenApi(app);
  await registerPages(app);
  const refuseOthers = otherMethods(app, () => new ManagementProblem('method_not_allowed'));
  registerMetrics(app, context, collector);
  registerHealth(app, { ...context, findings });
  await app.register(consoleRoutes());
  app.decorateRequest('caller', null);
  app.decorateRequest('sessionId', null);
  const routes: RouteAccess[] = [];
  await app.register(ingestRoutes(context, { recent, live }));
  await app.register(async (open) => {
    open.addHook('onRequest', limits.address);
    await open.register(loginRoutes(context, login));
    await open.register(handoverPageRoutes(context, handovers, limits.page));
  });
  await app.register(async (api) => {
    api.addHook('onRequest', limits.address);
    api.addHook('onRequest', (request) => login.recognise(request));
    api.addHook('onRequest', async (request) => {
      request.caller = await context.authenticate(request.headers.authorization);
    });
    api.addHook('onRequest', limits.subject);
    registerAudit(api, context.db);
    registerRights(api, context);
    registerIdempotency(api, context.db);
    registerIfMatch(api, context);
    collectRoutes(api, routes);
    api.addHook('preValidation', async ({ body, routeOptions }) => {
      if (routeOptions.schema?.body === undefined || (body ?? null) !== null) return;
      const message = 'must be a JSON object; the request has no body';
      throw new ManagementProblem('invalid_request', {
        detail: `the body ${message}`,
        errors: [{ path: '', message }],
      });
    });
    await api.register(containersRoutes(context, { runner, projection }));
    await api.register(cloneRoutes(context, runner));
    await api.register(listRoutes(context));
    await api.register(historyRoutes(context, { projection, runner }));
    await api.register(changesRoutes(context, projection));
    await api.register(settingsRoutes(context, projection));
    await api.register(loaderTokensRoutes(context, projection));
    await api.register(domainsRoutes(context, projection));
    await api.register(domainStatesRoutes(context, projection, hosts));
    await api.register(handoverLinksRoutes(context, handovers));
    await api.register(transferRoutes(context, projection));
    await api.register(verificationRoutes(context));
    await api.register(checklistRoutes(context));
    await api.register(tenantRoutes(context, tenants));
    await api.register(tokensRoutes(context));
    await api.register(eventsRoutes(context, events));
    await api.register(requestsRoutes(context, { recent, live, search }));
    await api.register(profilesRoutes(context));
    await api.register(printed.routes);
    await api.register(operationsRoutes(context, waits));
    await api.register(auditRoutes(context));
    await api.register(bulkRoutes(context));
    await api.register(pluginsRoutes());
    await api.register(trafficRoutes(context));
    await api.register(usageRoutes(context));
    await api.register(webhooksRoutes(context));
    await api.register(policiesRoutes(context));
    await api.register(rolloutsRoutes(context, () => rollouts.trigger()));
    await api.register(instanceRoutes(context));
    await api.register(deliveriesRoutes(context, () => deliverer.trigger()));
    await api.register(ownSessionRoutes(context, login));
  });
  refuseOthers(app);
  await app.ready();

  return {
    app,
    routes,
    async follow(signal) {
      await Promise.all([
        runner.run(signal),
        rollouts.run(signal),
        projection.follow(signal),
        hostWatch.run(signal),
        watchDns(context, hosts, signal),
        printed.watch(signal),
        events.follow(signal),
        deliverer.run(signal),
        collector?.run(signal),
        ...[keepForgetting, keepFolding, keepPruning, keepProofs].map((keep) => keep(context, signal)),
        login.follow(signal),
        live.follow(signal),
        search?.follow(signal),
        handovers.run(signal),
      ]);
    },
  };
}
