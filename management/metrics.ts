import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Context } from './context/context.ts';
import { countFreePorts } from './ports/ports.repository.ts';

/** Latency by route, containers and operations by status, and free ports, in a registry of this app's own. */
export function registerMetrics(app: FastifyInstance, { db }: Pick<Context, 'db'>): void {
  const register = new Registry();
  collectDefaultMetrics({ register });
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
  app.get('/metrics', { schema: { hide: true }, config: { polled: true } }, async (_request, reply) =>
    reply.type(register.contentType).send(await register.metrics()),
  );
}
