import { setImmediate } from 'node:timers/promises';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { equalSecrets } from '../../base/http/equal-secrets.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { LiveRequests } from './live-hub.ts';
import type { RecentRequests } from './recent.ts';
import { type KeyedRow, keyedRow } from './rows/record.ts';

/** The longest body. A delivery of the queue has up to a hundred messages of fifty records. */
const MOST_OCTETS = 8 * 1024 * 1024;
/** Lines parsed in one go: some milliseconds. */
const LINES_AT_ONCE = 500;
/** Bodies that are read at once. The edge doesn't repeat what is refused: the records are in the bucket anyway. */
const MOST_AT_ONCE = 4;

/**
 * Takes the edge's records as they are delivered, for live streams and the newest rows of a search. The route is for
 * the edge only, which sends a secret of its own. Without INGEST_SECRET there is no such route.
 */
export function ingestRoutes(
  { settings, clock, log }: Pick<Context, 'settings' | 'clock' | 'log'>,
  { recent, live }: { readonly recent: RecentRequests; readonly live: LiveRequests },
): FastifyPluginAsyncZod {
  return async (app) => {
    const { ingestSecret } = settings;
    if (ingestSecret === null) return;
    let open = 0;
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      '*',
      { parseAs: 'string', bodyLimit: MOST_OCTETS },
      async (_request: unknown, body: string) => body,
    );

    app.post('/ingest', {
      schema: { hide: true },
      config: { polled: true },
      onRequest: async (request, reply) => {
        const given = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
        if (given === undefined) throw new ManagementProblem('missing_token');
        if (!equalSecrets(ingestSecret, given)) throw new ManagementProblem('invalid_token');
        if (open >= MOST_AT_ONCE) {
          reply.header('retry-after', 1);
          throw new ManagementProblem('rate_limited', {
            detail: `${open} other deliveries are being processed`,
          });
        }
        open += 1;
        reply.raw.once('close', () => {
          open -= 1;
        });
      },
      handler: async (request, reply) => {
        const lines = typeof request.body === 'string' ? request.body.split('\n') : [];
        const rows: KeyedRow[] = [];
        let refused = 0;
        for (const [index, line] of lines.entries()) {
          if (line.trim() === '') continue;
          // Lets the process answer other requests in between.
          if (index % LINES_AT_ONCE === LINES_AT_ONCE - 1) await setImmediate();
          const row = keyedRow(line, null);
          if (row === null) refused += 1;
          else rows.push(row);
        }
        if (refused > 0) log.warn({ refused }, 'invalid lines from the edge were dropped');
        live.push(recent.add(rows, clock.date().getTime()));
        // Otherwise the connection of the sender, kept alive for 72 s, can delay a stop.
        reply.header('connection', 'close');
        return reply.status(202).send({ accepted: rows.length, refused });
      },
    });
  };
}
