import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { HEALTHS, SITE_STATES } from '../../../gitops/report/site-state.ts';
import { demandRole } from '../../access/roles.ts';
import type { Context } from '../../context/context.ts';
import { callerOf } from '../../http/auth.ts';
import { problems } from '../../http/openapi.ts';
import { LIVE, STATUSES } from '../../lifecycle/status.ts';
import {
  countContainers,
  type ListOrder,
  listContainers,
  listSummaries,
  SORT_KEYS,
  type SummaryRow,
} from '../../records/container-lists.repository.ts';
import { lastDays } from '../../records/last-days.repository.ts';
import { presentContainer } from '../../view/present.ts';
import { cursorOf, positionOf } from './cursor.ts';
import {
  type ContainerCounts,
  type ContainerSummary,
  containerCounts,
  containerList,
  countsQuery,
  listQuery,
} from './list.schema.ts';

/** Lists of containers, and how many there are. */
export function listRoutes({ db, settings, clock }: Context): FastifyPluginAsyncZod {
  const tags = ['containers'];

  return async (app) => {
    app.get(
      '/server-containers',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listContainers',
          summary: 'Search and list the containers of the caller’s clients, by default the newest first',
          tags,
          querystring: listQuery,
          response: { 200: containerList, ...problems('invalid_request', 'unknown_client') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const {
          clientId,
          client = clientId,
          after,
          cursor = after,
          limit,
          sort,
          view,
          ...filter
        } = request.query;
        if (client !== undefined) await demandRole(db, client, caller.subject, 'read');
        const order = orderOf(sort);
        const position = cursor === undefined ? null : positionOf(sort, order, cursor);
        const query = { ...filter, caller, client, order, after: position, limit: limit + 1 };
        const nextAfter = (rows: readonly { readonly seq: string; readonly sort_key: string }[]) => {
          const last = rows[limit - 1];
          return rows.length > limit && last !== undefined
            ? cursorOf(sort, order, { key: last.sort_key, seq: last.seq })
            : null;
        };
        if (view === 'summary') {
          const rows = await listSummaries(db, query);
          const shown = rows.slice(0, limit);
          const traffic = await lastDays(
            db,
            shown.map(({ id }) => id),
            clock.date(),
          );
          const containers = shown.map((row) => summaryOf(row, traffic?.(row.id) ?? null));
          return { containers, next: nextAfter(rows) };
        }
        const rows = await listContainers(db, query);
        const containers = rows.slice(0, limit).map((row) => presentContainer(row, settings));
        return { containers, next: nextAfter(rows) };
      },
    );

    app.get(
      '/server-containers/summary',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'countContainers',
          summary: 'Count the containers of the caller’s clients by state, status and health',
          tags,
          querystring: countsQuery,
          response: { 200: containerCounts, ...problems('invalid_request', 'unknown_client') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { client } = request.query;
        if (client !== undefined) await demandRole(db, client, caller.subject, 'read');
        return countsOf(await countContainers(db, { caller, client }));
      },
    );
  };
}

function orderOf(sort: string): ListOrder {
  const isDescending = sort.startsWith('-');
  const key = SORT_KEYS.find((one) => one === (isDescending ? sort.slice(1) : sort)) ?? 'createdAt';
  return { key, isDescending };
}

function summaryOf(row: SummaryRow, traffic: ContainerSummary['traffic']): ContainerSummary {
  return {
    id: row.id,
    siteId: row.site_id,
    client: row.client_id,
    clientId: row.client_id,
    name: row.name,
    status: row.status,
    statusReason: row.status_reason,
    suspended: row.suspended,
    serving: row.serving,
    health: row.health,
    state: row.state,
    domains: row.domains,
    traffic,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

function countsOf(rows: Awaited<ReturnType<typeof countContainers>>): ContainerCounts {
  const sum = (some: typeof rows) => some.reduce((total, { count }) => total + count, 0);
  const by = <Key extends string>(keys: readonly Key[], count: (key: Key) => number) =>
    Object.fromEntries(keys.map((key) => [key, count(key)])) as Record<Key, number>; // it forgets the key type
  return {
    total: sum(rows),
    state: by(SITE_STATES, (state) => sum(rows.filter((row) => row.state === state))),
    status: by(STATUSES, (status) => sum(rows.filter((row) => row.status === status))),
    health: by(HEALTHS, (health) => sum(rows.filter((row) => row.health === health))),
    suspended: sum(rows.filter(({ status, suspended }) => suspended && LIVE.includes(status))),
  };
}
