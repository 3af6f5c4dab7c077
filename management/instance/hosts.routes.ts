import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { sql } from 'kysely';
import { demandOperator } from '../access/operators.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { driftList, hostList } from './instance.schema.ts';
import { instanceOf } from './provisioner.ts';
import { containerIds } from './sites.repository.ts';

/** The host and what was changed on it from outside, for operators. */
export function hostsRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, settings, clock } = context;

  async function ports() {
    const { rows } = await sql<{ size: number; free: number }>`
      select * from count_ports(${settings.host})`.execute(db);
    return rows[0] ?? { size: 0, free: 0 };
  }

  async function containers() {
    const rows = await db
      .selectFrom('containers')
      .select(['status', sql<number>`count(*)::integer`.as('count')])
      .groupBy('status')
      .execute();
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  }

  /** A host that doesn't answer is part of the answer. */
  async function reported(requestId: string) {
    const instance = instanceOf(context, requestId);
    try {
      const [{ revision, problem, source, quotas, sites }, { checks }] = await Promise.all([
        instance.state(),
        instance.health(),
      ]);
      const counts = Map.groupBy(sites, ({ reason }) => reason);
      return {
        state: problem === null && source === null ? ('ready' as const) : ('not_ready' as const),
        problem: problem ?? source?.message ?? null,
        revision,
        quotas,
        checks,
        sites: Object.fromEntries([...counts].map(([reason, all]) => [reason, all.length])),
      };
    } catch (error) {
      if (!(error instanceof ManagementProblem)) throw error;
      const nothing = { revision: null, quotas: [], checks: [], sites: {} };
      return { state: 'unreachable' as const, problem: error.message, ...nothing };
    }
  }

  return async (app) => {
    app.get(
      '/hosts',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'listHosts',
          summary: 'Read the capacity and the state of the host',
          tags: ['instance'],
          response: { 200: hostList, ...problems('forbidden') },
        },
      },
      async (request) => {
        demandOperator(settings, request);
        const host = {
          name: settings.host,
          ...(await reported(request.id)),
          ports: await ports(),
          containers: await containers(),
          asOf: clock.date().toISOString(),
        };
        return { items: [host], next: null };
      },
    );

    app.get(
      '/drift',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'listDrift',
          summary: 'Observe the host, and list what was changed from outside',
          tags: ['instance'],
          response: { 200: driftList, ...problems('forbidden', 'host_unavailable') },
        },
      },
      async (request) => {
        demandOperator(settings, request);
        const { revision, changes } = await instanceOf(context, request.id).plan(null);
        const drifted = changes.filter(({ drift }) => drift);
        const ids = await containerIds(
          db,
          drifted.map(({ site }) => site),
        );
        return {
          asOf: clock.date().toISOString(),
          revision,
          items: drifted.map((change) => ({ ...change, containerId: ids.get(change.site) ?? null })),
          next: null,
        };
      },
    );
  };
}
