import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { sql } from 'kysely';
import { z } from 'zod';
import { counted } from '../../base/text.ts';
import type { PartCheck, PlanReport } from '../../gitops/report/report.ts';
import { demandOperator } from '../access/operators.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { driftList, driftQuery, hostList, hostsQuery } from './instance.schema.ts';
import { instanceOf } from './provisioner.ts';
import { containerIds } from './sites.repository.ts';

/** The most sites that a check names. */
const MOST_NAMED = 20;

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

  /** Whether the host has sites that no container shows, because git gives them an unknown client or another's id. */
  async function unknownSites(
    all: readonly { readonly site: string; readonly reason: string }[],
  ): Promise<PartCheck> {
    const present = all.filter(({ reason }) => reason !== 'Removed').map(({ site }) => site);
    const known = await containerIds(db, present);
    const unknown = present.filter((site) => !known.has(site));
    const passed = { name: 'containers', status: 'passed', fix: null } as const;
    if (unknown.length === 0) return { ...passed, detail: 'every site of the host has its container here' };
    return {
      name: 'containers',
      status: 'failed',
      detail: `the host has ${counted(unknown.length, 'site')} that no container here shows: ${unknown.slice(0, MOST_NAMED).join(', ')}${unknown.length > MOST_NAMED ? ' …' : ''}`,
      fix: 'In the file of each, name a client that has a file clients/<id>.yaml, and a container id that no other site has; or remove the site.',
    };
  }

  /** `unreachable`: the host doesn't answer. */
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
        checks: [...checks, await unknownSites(sites)],
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
          querystring: hostsQuery,
          response: { 200: hostList, ...problems('invalid_request', 'forbidden') },
        },
      },
      async (request) => {
        demandOperator(settings, request);
        const [after = ''] = keyFrom(request.query.cursor, z.tuple([z.string()])) ?? [];
        if (settings.host <= after) return { items: [], next: null };
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
          description: 'Each page is a new observation, which `asOf` and `revision` belong to.',
          tags: ['instance'],
          querystring: driftQuery,
          response: { 200: driftList, ...problems('invalid_request', 'forbidden', 'host_unavailable') },
        },
      },
      async (request) => {
        demandOperator(settings, request);
        const { limit, cursor } = request.query;
        const after = keyFrom(cursor, z.tuple([z.string(), z.string(), z.string()]));
        const { revision, changes } = await instanceOf(context, request.id).plan(null);
        const drifted = changes
          .filter((change) => change.drift && (after === null || isBehind(placeOf(change), after)))
          .sort((a, b) => (isBehind(placeOf(a), placeOf(b)) ? 1 : -1));
        const { items, next } = listPage(drifted.slice(0, limit + 1), limit, placeOf);
        const ids = await containerIds(
          db,
          items.map(({ site }) => site),
        );
        return {
          asOf: clock.date().toISOString(),
          revision,
          items: items.map((change) => ({ ...change, containerId: ids.get(change.site) ?? null })),
          next,
        };
      },
    );
  };
}

type Place = readonly string[];

/** The place of a change in the list of drift, which is sorted by it. */
function placeOf({ site, target, key }: PlanReport['changes'][number]): Place {
  return [site, target, key];
}

function isBehind(one: Place, other: Place): boolean {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (one[at] ?? '') > (other[at] ?? '');
}
