import type { FastifyInstance, FastifyRequest } from 'fastify';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { equalSecrets } from '../base/http/equal-secrets.ts';
import { SITE_STATES } from '../gitops/report/site-state.ts';
import type { Context } from './context/context.ts';
import { ManagementProblem } from './http/errors.ts';
import { countFreePorts } from './ports/ports.repository.ts';
import type { Collector } from './traffic/collector.ts';
import { registerTrafficMetrics } from './traffic/collector-metrics.ts';

/**
 * Latency by route, containers and operations by status, free ports, and the collector of traffic, in a registry of this
 * app's own.
 */
export function registerMetrics(
  app: FastifyInstance,
  { db, settings }: Pick<Context, 'db' | 'settings'>,
  collector: Collector | null,
): void {
  const register = new Registry();
  collectDefaultMetrics({ register });
  if (collector !== null) registerTrafficMetrics(register, { db, collector });
  const latency = new Histogram({
    name: 'tagyard_management_request_seconds',
    help: 'Time from request to answer',
    labelNames: ['method', 'route', 'status'],
    registers: [register],
  });
  new Gauge({
    name: 'tagyard_ports_free',
    help: 'Pairs of the port pool that no container leases',
    registers: [register],
    async collect() {
      this.set(await countFreePorts(db));
    },
  });
  new Gauge({
    name: 'tagyard_containers',
    help: 'Containers by status',
    labelNames: ['status'],
    registers: [register],
    async collect() {
      const rows = await db
        .selectFrom('containers')
        .select(({ fn }) => ['status', fn.countAll().as('count')])
        .groupBy('status')
        .execute();
      this.reset();
      for (const { status, count } of rows) this.set({ status }, Number(count));
    },
  });

  new Gauge({
    name: 'tagyard_container_states',
    help: 'Containers by the state of their site',
    labelNames: ['state'],
    registers: [register],
    async collect() {
      const rows = await db
        .selectFrom('containers')
        .select(({ fn }) => ['state_name', fn.countAll().as('count')])
        .groupBy('state_name')
        .execute();
      const counts = new Map(rows.map(({ state_name, count }) => [state_name, Number(count)]));
      for (const state of SITE_STATES) this.set({ state }, counts.get(state) ?? 0);
    },
  });

  new Gauge({
    name: 'tagyard_containers_silent',
    help: 'Containers whose host reports nothing',
    registers: [register],
    async collect() {
      const row = await db
        .selectFrom('containers')
        .select(({ fn }) => fn.countAll().as('count'))
        .where('host_reason', '=', 'host_silent')
        .executeTakeFirstOrThrow();
      this.set(Number(row.count));
    },
  });

  new Gauge({
    name: 'tagyard_operations',
    help: 'Creations, restorations and removals by status',
    labelNames: ['kind', 'status'],
    registers: [register],
    async collect() {
      const rows = await db
        .selectFrom('operations')
        .select(({ fn }) => ['kind', 'status', fn.countAll().as('count')])
        .groupBy(['kind', 'status'])
        .execute();
      this.reset();
      for (const { kind, status, count } of rows) this.set({ kind, status }, Number(count));
    },
  });

  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown';
    latency.observe({ method: request.method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
  });
  app.get('/metrics', { schema: { hide: true }, config: { polled: true } }, async (request, reply) => {
    demandMonitor(request, settings.metricsToken);
    return reply.type(register.contentType).send(await register.metrics());
  });
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;
/** A proxy on this machine adds one of these headers to the requests that it forwards. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/**
 * Throws unless the caller may read the metrics, which cover all clients: with the token, or, if none is set, by a
 * direct request from this machine.
 */
function demandMonitor({ headers, socket }: FastifyRequest, token: string | null): void {
  if (token !== null) {
    const given = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    if (given === undefined) throw new ManagementProblem('missing_token');
    if (!equalSecrets(token, given)) throw new ManagementProblem('invalid_token');
    return;
  }
  const isDirect = FORWARDED.every((name) => headers[name] === undefined);
  if (isDirect && LOOPBACK.test(socket.remoteAddress ?? '')) return;
  throw new ManagementProblem('forbidden', {
    detail:
      'set METRICS_TOKEN and send it as a bearer token; without it, only direct requests from this machine may read the metrics',
  });
}
