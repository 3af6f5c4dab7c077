import { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainer } from '../access/containers.ts';
import { demandRole } from '../access/roles.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { listContainers } from '../records/containers.repository.ts';
import { listEvents } from '../records/events.repository.ts';
import { changeHeaders, containerParams, containerView } from '../view/container-view.ts';
import { containerEtag, isKnown } from '../view/etag.ts';
import { presentContainer } from '../view/present.ts';
import type { Projector } from './change.service.ts';
import {
  containerList,
  creationHeaders,
  eventList,
  eventsHeaders,
  eventsQuery,
  listQuery,
  newContainer,
  readHeaders,
} from './containers.schema.ts';
import { createContainer, type OperationRunner } from './create.service.ts';
import type { EventHub } from './event-hub.ts';
import { eventStream } from './event-stream.ts';
import { removeContainer } from './remove.service.ts';

/** Creating, reading and removing containers. */
export function containersRoutes(
  context: Context,
  {
    runner,
    projection,
    events,
  }: { readonly runner: OperationRunner; readonly projection: Projector; readonly events: EventHub },
): FastifyPluginAsyncZod {
  const { db, settings } = context;
  const tags = ['containers'];

  /** Open streams. A stop of the process aborts them instead of waiting for their end. */
  const streams = new Set<AbortController>();

  return async (app) => {
    app.addHook('preClose', async () => {
      for (const stream of streams) stream.abort();
    });

    app.post(
      '/server-containers',
      {
        schema: {
          operationId: 'createContainer',
          summary: 'Create a server container for a client',
          description: 'Answers once the provisioner has accepted it. It becomes `active` in the background.',
          tags,
          headers: creationHeaders,
          body: newContainer,
          response: {
            202: containerView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_client',
              'domain_in_use',
              'quota_reached',
              'request_in_progress',
              'body_too_large',
              'unsupported_media_type',
              'invalid_container_config',
              'idempotency_key_reused',
              'provisioning_failed',
              'no_free_port',
            ),
          },
        },
      },
      async (request, reply) => {
        const container = await createContainer(context, runner, {
          body: request.body,
          caller: callerOf(request),
          requestId: request.id,
          idempotencyKey: request.headers['idempotency-key'],
        });
        return reply.status(202).header('location', `/server-containers/${container.id}`).send(container);
      },
    );

    app.get(
      '/server-containers',
      {
        schema: {
          operationId: 'listContainers',
          summary: 'List the containers of the caller’s clients, the newest first',
          tags,
          querystring: listQuery,
          response: { 200: containerList, ...problems('invalid_request', 'unknown_client') },
        },
      },
      async (request) => {
        const { subject } = callerOf(request);
        const { clientId, limit } = request.query;
        if (clientId !== undefined) await demandRole(db, clientId, subject, 'read');
        const rows = await listContainers(db, { ...request.query, subject, limit: limit + 1 });
        const page = rows.slice(0, limit);
        return {
          containers: page.map((row) => presentContainer(row, settings)),
          next: rows.length > limit ? (page.at(-1)?.seq ?? null) : null,
        };
      },
    );

    app.get(
      '/server-containers/:id',
      {
        schema: {
          operationId: 'getContainer',
          summary: 'Read one container',
          tags,
          params: containerParams,
          headers: readHeaders,
          response: {
            200: containerView,
            304: z.null().meta({ description: 'the container has not changed since `If-None-Match`' }),
            ...problems('invalid_request', 'unknown_container'),
          },
        },
      },
      async (request, reply) => {
        const row = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const view = presentContainer(row, settings);
        const etag = containerEtag(row.manifest, view);
        reply.header('etag', etag);
        const known = isKnown(request.headers['if-none-match'], etag);
        return known ? reply.status(304).send(null) : view;
      },
    );

    app.get(
      '/server-containers/:id/events',
      {
        schema: {
          operationId: 'listContainerEvents',
          summary: 'Read the last events of a container, the oldest first, or follow them',
          tags,
          params: containerParams,
          headers: eventsHeaders,
          querystring: eventsQuery,
          response: {
            200: eventList,
            ...problems('invalid_request', 'unknown_container', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const { subject } = callerOf(request);
        const row = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const { accept, authorization, 'last-event-id': last = '0' } = request.headers;
        if (accept?.includes('text/event-stream')) {
          const stop = new AbortController();
          const of = { container: row.id, client: row.client_id, subject, authorization };
          const subscription = events.subscribe(of, stop.signal);
          streams.add(stop);
          reply.raw.once('close', () => {
            stop.abort();
            streams.delete(stop);
          });
          const stream = Readable.from(eventStream(context, subscription, last));
          // Otherwise its connection, kept alive for 72 s, can delay a stop that has just ended the stream.
          reply.header('connection', 'close');
          return reply.type('text/event-stream').send(stream as never); // the schema doesn't serialise a stream
        }
        return { events: await listEvents(db, row.id, request.query.limit) };
      },
    );

    app.delete(
      '/server-containers/:id',
      {
        schema: {
          operationId: 'removeContainer',
          summary: 'Remove a container and everything that runs for it',
          tags,
          params: containerParams,
          headers: changeHeaders,
          response: {
            202: containerView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'container_busy',
              'site_protected',
              'manifest_broken',
              'precondition_failed',
              'projection_failed',
              'sites_repo_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        const row = await removeContainer(context, projection, {
          id: request.params.id,
          caller: callerOf(request),
          requestId: request.id,
          ifMatch: request.headers['if-match'],
        });
        runner.trigger();
        return reply.status(202).send(presentContainer(row, settings));
      },
    );
  };
}
