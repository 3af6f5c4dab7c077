import { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { containerParams } from '../view/container-view.ts';
import { keyFrom } from '../view/page.ts';
import {
  containerLogsQuery,
  containerLogsView,
  liveLogsHeaders,
  liveLogsQuery,
} from './container-logs.schema.ts';
import type { HostLogs } from './host-logs.ts';
import { LiveLogs } from './live.ts';

/** A line's time and number, which the host has put into a cursor. */
const position = z.tuple([z.number().int(), z.number().int()]);

/** What a container's tag servers have printed: searched, joined to a request, and followed. */
export function containerLogsRoutes(context: Context, host: HostLogs): FastifyPluginAsyncZod {
  const { db } = context;
  const live = new LiveLogs(context, host);
  /** Open streams. A stop of the process aborts them instead of waiting for their end. */
  const streams = new Set<AbortController>();

  return async (app) => {
    app.addHook('preClose', async () => {
      for (const one of streams) one.abort();
    });

    app.get(
      '/server-containers/:id/container-logs',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listContainerLogs',
          summary: 'Search what a container’s tag servers have printed, the newest first',
          description:
            '`requestId` answers what the tags said of one request of `…/requests`. Bodies, headers and queries are not kept.',
          tags: ['requests'],
          params: containerParams,
          querystring: containerLogsQuery,
          response: {
            200: containerLogsView,
            ...problems('invalid_request', 'unknown_container', 'host_unavailable'),
          },
        },
      },
      async (request) => {
        const { site_id } = await demandContainer(db, request.params.id, callerOf(request), 'read');
        keyFrom(request.query.cursor, position);
        return await host.page(site_id, request.query, request.id);
      },
    );

    app.get(
      '/server-containers/:id/container-logs/live',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'followContainerLogs',
          summary: 'Follow what a container’s tag servers print',
          description:
            'Server-sent events: `log` with a line, whose id continues a stream as `Last-Event-ID`, and `gap` with the number of lines that were removed before they were sent (`missed`; null: unknown).',
          tags: ['requests'],
          params: containerParams,
          headers: liveLogsHeaders,
          querystring: liveLogsQuery,
          response: {
            200: { description: 'the stream', content: { 'text/event-stream': { schema: z.string() } } },
            ...problems('invalid_request', 'unknown_container', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { id, site_id: site } = await demandContainer(db, request.params.id, caller, 'read');
        const stop = new AbortController();
        live.admit(caller, stop.signal);
        streams.add(stop);
        reply.raw.once('close', () => {
          stop.abort();
          streams.delete(stop);
        });
        const { authorization, 'last-event-id': last } = request.headers;
        const reader = { caller, authorization, container: id, site, filter: request.query, last };
        // Otherwise its connection, kept alive for 72 s, can delay a stop that has just ended the stream.
        reply.header('connection', 'close');
        const text = Readable.from(live.stream(reader, stop.signal), { highWaterMark: 1 });
        return reply.type('text/event-stream').send(text as never); // the schema doesn't serialise a stream
      },
    );
  };
}
