import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { demandContainer } from '../access/containers.ts';
import { demandRole } from '../access/roles.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { eventStream, jsonOr } from '../http/texts.ts';
import { listEvents, newestEvent } from '../records/events.repository.ts';
import { containerParams } from '../view/container-view.ts';
import { paged } from '../view/page.ts';
import type { EventHub } from './event-hub.ts';
import { EventStream, eventText } from './event-stream.ts';
import {
  containerEvents,
  containerEventsQuery,
  eventsHeaders,
  feedPage,
  feedQuery,
} from './events.schema.ts';
import type { Subscriber } from './subscription.ts';

const CLIENT = '5e0c1a3e-7f64-4a37-9c7c-0d6f1f2b3c4d';
const STREAM = eventStream({
  description: 'for each event, a message with its `id`, its `kind` as the type, and the event as JSON',
  example: eventText({
    id: '1742',
    containerId: '3f1f2f0e-54a5-4d6b-8f9e-0a1b2c3d4e5f',
    client: CLIENT,
    clientId: CLIENT,
    at: '2026-11-23T10:00:00.000Z',
    kind: 'status',
    status: 'active',
    state: null,
    reason: null,
    detail: null,
    actor: null,
    requestId: null,
    revision: '490cd4e1f0b2a3948576a1b2c3d4e5f60718293a',
  }),
});

/** Events of one container and of all containers, as a list and as a stream. */
export function eventsRoutes({ db, streams }: Context, hub: EventHub): FastifyPluginAsyncZod {
  function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    of: Pick<Subscriber, 'client' | 'filter'>,
    last: string,
  ) {
    const { authorization } = request.headers;
    const subscriber = { ...of, caller: callerOf(request), authorization };
    const subscription = hub.subscribe(subscriber, streams.stream(reply));
    const events = new EventStream(hub, subscription, last);
    return reply.type('text/event-stream').send(events as never); // the schema doesn't serialise a stream
  }

  return async (app) => {
    app.get(
      '/server-containers/:id/events',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listContainerEvents',
          summary: 'Read the last events of a container, the oldest first, or follow them',
          tags: ['containers'],
          params: containerParams,
          headers: eventsHeaders,
          querystring: containerEventsQuery,
          response: {
            200: jsonOr(containerEvents, STREAM),
            ...problems('invalid_request', 'unknown_container', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const { id, client_id } = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const { accept, 'last-event-id': last = '0' } = request.headers;
        if (isStream(accept)) {
          return stream(request, reply, { client: client_id, filter: { container: id } }, last);
        }
        const { limit, cursor } = request.query;
        const rows = await listEvents(db, { container: id }, { limit: limit + 1, cursor, order: 'desc' });
        const { items, next } = paged(rows, limit, (event) => event.id);
        return { events: items.reverse(), next };
      },
    );

    app.get(
      '/events',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listEvents',
          summary: 'Read the events of all containers that the caller may read, or follow them',
          description:
            'A stream without `last-event-id` or `cursor` begins with the next event. It has each event that the caller may read at the time of sending.',
          tags: ['events'],
          headers: eventsHeaders,
          querystring: feedQuery,
          response: {
            200: jsonOr(feedPage, STREAM),
            ...problems('invalid_request', 'unknown_client', 'unknown_container', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { client, container, kind, limit, cursor, sort } = request.query;
        if (client !== undefined) await demandRole(db, client, caller.subject, 'read');
        const owner =
          container === undefined ? null : (await demandContainer(db, container, caller, 'read')).client_id;
        const filter = { client, container, kinds: kind && [kind] };
        const { accept, 'last-event-id': last } = request.headers;
        if (isStream(accept)) {
          const from = last ?? cursor ?? (await newestEvent(db));
          return stream(request, reply, { client: client ?? owner, filter }, from);
        }
        const order = sort === 'id' ? 'asc' : 'desc';
        const rows = await listEvents(db, { ...filter, caller }, { limit: limit + 1, cursor, order });
        return paged(rows, limit, ({ id }) => id);
      },
    );
  };
}

function isStream(accept: string | undefined): boolean {
  return accept?.includes('text/event-stream') === true;
}
