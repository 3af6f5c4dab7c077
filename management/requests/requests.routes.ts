import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { demandAnyContainer, demandContainerOrOperator } from '../access/containers.ts';
import { demandRoleIn, isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { jsonOr } from '../http/texts.ts';
import { visibleClients } from '../records/memberships.repository.ts';
import { containerParams } from '../view/container-view.ts';
import { deletedRequests } from './deleted.ts';
import { exportedRequests, REQUEST_EXPORTS } from './export.ts';
import { type LiveRequests, liveStream } from './live-hub.ts';
import { RETRY_SECONDS, requestPage } from './pages.ts';
import type { RecentRequests } from './recent.ts';
import {
  containerRequestsQuery,
  liveHeaders,
  liveQuery,
  type RequestsQuery,
  requestsPage,
  requestsQuery,
} from './requests.schema.ts';
import type { RequestFilter } from './rows/filter.ts';
import type { RequestSearch } from './search/search.ts';
import { LIVE_TEXTS, REQUEST_TEXTS } from './texts.ts';

const DAY_MS = 86_400_000;

interface RequestsParts {
  readonly live: LiveRequests;
  readonly recent: RecentRequests;
  readonly search: RequestSearch | null;
}

interface LiveStream {
  readonly container: string;
  readonly filter: RequestFilter;
  readonly last: string | undefined;
}

/** Ids of the containers whose requests are asked for, checked anew for each page; `null`: all there are. */
type ReadableContainers = () => Promise<readonly string[] | null>;

/** The requests that the edge has answered: searched, exported, and followed as they arrive. */
export function requestsRoutes(
  context: Context,
  { live, recent, search }: RequestsParts,
): FastifyPluginAsyncZod {
  const { db, clock, streams } = context;

  async function answer(reply: FastifyReply, query: RequestsQuery, readable: ReadableContainers) {
    const { format, ...page } = query;
    const read = async (asked: Pick<RequestsQuery, 'from' | 'to' | 'limit' | 'cursor'>) =>
      await requestPage(
        { search, recent, clock },
        { ...filterOf(page), containers: await readable(), deleted: await deletedRequests(db) },
        asked,
      );
    try {
      if (format === 'json') return await read(page);
      streams.countExport(reply);
      const to = page.to ?? clock.date().toISOString();
      const from = page.from ?? new Date(Date.parse(to) - DAY_MS).toISOString();
      const rows = exportedRequests((cursor) => read({ from, to, limit: 1_000, cursor }), format);
      // Read before the answer begins, so that an error of the first page can be answered as a problem.
      const text = Readable.from(prefetched(await rows.next(), rows));
      reply.header('content-disposition', `attachment; filename="requests.${format}"`);
      return reply.type(`${REQUEST_EXPORTS[format].type}; charset=utf-8`).send(text as never); // unserialised
    } catch (error) {
      if (error instanceof ManagementProblem && error.code === 'search_unavailable') {
        reply.header('retry-after', RETRY_SECONDS);
      }
      throw error;
    }
  }

  /** Ids of what the caller may see of the client, or of all clients. */
  async function visible(request: FastifyRequest, client: string | undefined) {
    const caller = callerOf(request);
    let query = db.selectFrom('containers').select('id');
    if (client !== undefined) {
      await demandRoleIn(context, { kind: 'clients', id: client }, caller, 'read');
      query = query.where('client_id', '=', client);
    } else if (isOperator(context, caller)) return null;
    else query = query.where('client_id', 'in', visibleClients(db, caller));
    return (await query.execute()).map(({ id }) => id);
  }

  function stream(request: FastifyRequest, reply: FastifyReply, asked: LiveStream) {
    const { container, filter, last } = asked;
    const { authorization } = request.headers;
    const follower = { caller: callerOf(request), authorization, container, filter };
    const subscription = live.subscribe(follower, last, streams.stream(reply));
    const text = Readable.from(liveStream(subscription), { highWaterMark: 1 });
    return reply.type('text/event-stream').send(text as never); // the schema doesn't serialise a stream
  }

  return async (app) => {
    app.get(
      '/server-containers/:id/requests',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'listContainerRequests',
          summary: 'Search or export the requests of a container at the edge, the newest first',
          tags: ['requests'],
          params: containerParams,
          querystring: containerRequestsQuery,
          response: {
            200: jsonOr(requestsPage, REQUEST_TEXTS),
            ...problems('invalid_request', 'unknown_container', 'too_many_streams', 'search_unavailable'),
          },
        },
      },
      async (request, reply) =>
        await answer(reply, request.query, async () => {
          const { id } = await demandContainerOrOperator(
            context,
            request.params.id,
            callerOf(request),
            'read',
          );
          return [id];
        }),
    );

    app.get(
      '/server-containers/:id/requests/live',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'followContainerRequests',
          summary: 'Follow the requests of a container at the edge',
          description:
            'Server-sent events: `request` with a row, and `gap` with the number of rows that the reader has `missed` (null: unknown).',
          tags: ['requests'],
          params: containerParams,
          headers: liveHeaders,
          querystring: liveQuery,
          response: {
            200: { description: 'the stream', content: LIVE_TEXTS },
            ...problems('invalid_request', 'unknown_container', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const { id } = await demandContainerOrOperator(context, request.params.id, callerOf(request), 'read');
        const filter = { ...request.query, containers: [id], deleted: await deletedRequests(db) };
        return stream(request, reply, { container: id, filter, last: request.headers['last-event-id'] });
      },
    );

    app.get(
      '/requests',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listRequests',
          summary: 'Search or export the requests of all containers that the caller may read',
          description: 'Operators also see requests to hostnames that the edge doesn’t know.',
          tags: ['requests'],
          querystring: requestsQuery,
          response: {
            200: jsonOr(requestsPage, REQUEST_TEXTS),
            ...problems(
              'invalid_request',
              'unknown_client',
              'unknown_container',
              'too_many_streams',
              'search_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        const { client, container, ...query } = request.query;
        return await answer(reply, query, async () => {
          const ids = await visible(request, client);
          if (container === undefined) return ids;
          if (ids === null) await demandAnyContainer(db, container);
          else if (!ids.includes(container)) throw new ManagementProblem('unknown_container');
          return [container];
        });
      },
    );
  };
}

function filterOf(query: Omit<RequestsQuery, 'format'>): Omit<RequestFilter, 'containers'> {
  const { route, status, cache, error, requestId, method, country, probes } = query;
  return { route, status, cache, error, requestId, method, country, probes };
}

async function* prefetched(
  first: IteratorResult<string, void>,
  rest: AsyncGenerator<string, void>,
): AsyncGenerator<string> {
  if (first.done === true) return;
  yield first.value;
  yield* rest;
}
