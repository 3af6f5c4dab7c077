import { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainerOrOperator } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { eventStream } from '../http/texts.ts';
import { containerParams } from '../view/container-view.ts';
import { keyFrom } from '../view/page.ts';
import {
  containerLogsQuery,
  containerLogsView,
  liveLogsHeaders,
  liveLogsQuery,
} from './container-logs.schema.ts';
import type { HostLogs } from './host-logs.ts';
import { LiveLogs, logText } from './live.ts';

const LINE = logText({
  id: '1742',
  time: '2026-11-23T10:00:00.000Z',
  source: 'processing/0',
  stream: 'stdout',
  level: 'warning',
  kind: 'tag',
  requestId: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  name: 'Facebook Conversion API',
  type: 'Response',
  eventName: 'purchase',
  requestMethod: null,
  requestUrl: null,
  responseStatusCode: 400,
  message: null,
  permission: null,
  dropped: null,
});
const STREAM = eventStream({
  description:
    '`log` with a line, and `gap` with the number of lines that were removed before they were sent',
  example: `${LINE}event: gap\ndata: {"missed":12}\n\n`,
});

/** The time and number of a line, which the host has put into a cursor. */
const position = z.tuple([z.number().int(), z.number().int()]);

/** What a container's tag servers have printed: searched, joined to a request, and followed. */
export function containerLogsRoutes(context: Context, host: HostLogs): FastifyPluginAsyncZod {
  const { streams } = context;
  const live = new LiveLogs(context, host);

  return async (app) => {
    app.get(
      '/server-containers/:id/container-logs',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'listContainerLogs',
          summary: 'Search what a container’s tag servers have printed, the newest first',
          description:
            'With `requestId`, the answer has what the tags printed about one request of `…/requests`. Bodies, headers and queries are not kept.',
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
        const { site_id } = await demandContainerOrOperator(
          context,
          request.params.id,
          callerOf(request),
          'read',
        );
        keyFrom(request.query.cursor, position);
        return await host.page(site_id, request.query, request.id);
      },
    );

    app.get(
      '/server-containers/:id/container-logs/live',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'followContainerLogs',
          summary: 'Follow what a container’s tag servers print',
          description:
            'Server-sent events: `log` with a line (a stream continues after the line whose id it gets as `Last-Event-ID`), and `gap` with the number of lines that were removed before they were sent (`missed`; null: unknown).',
          tags: ['requests'],
          params: containerParams,
          headers: liveLogsHeaders,
          querystring: liveLogsQuery,
          response: {
            200: { description: 'the stream', content: STREAM },
            ...problems('invalid_request', 'unknown_container', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { id, site_id: site } = await demandContainerOrOperator(
          context,
          request.params.id,
          caller,
          'read',
        );
        const { authorization, 'last-event-id': last } = request.headers;
        const reader = { caller, authorization, container: id, site, filter: request.query, last };
        const text = Readable.from(live.stream(reader, streams.stream(reply)), { highWaterMark: 1 });
        return reply.type('text/event-stream').send(text as never); // the schema doesn't serialise a stream
      },
    );
  };
}
