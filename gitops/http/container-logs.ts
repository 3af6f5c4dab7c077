import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { readCursor } from '../container-logs/search.ts';
import { logFilters } from '../report/container-logs.ts';
import type { DaemonDeps } from './deps.ts';
import { siteIdParams } from './request.ts';

/** The longest wait for a new line. */
const MOST_WAIT_SECONDS = 20;

const pageQuery = z.strictObject({
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional(),
  ...logFilters,
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z
    .string()
    .refine((text) => readCursor(text) !== null, 'is not the `next` of a page')
    .optional(),
});
const newerQuery = z.strictObject({
  ...logFilters,
  after: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(500),
  waitSeconds: z.coerce.number().min(0).max(MOST_WAIT_SECONDS).default(0),
});
const deletion = z.strictObject({ until: z.iso.datetime({ offset: true }) });

/** What the sites' containers have printed, see docs/logs.md. */
export function containerLogRoutes({
  containerLogs,
}: Pick<DaemonDeps, 'containerLogs'>): FastifyPluginAsyncZod {
  return async (app) => {
    if (containerLogs === undefined) return;
    const stopping = new AbortController();
    app.addHook('preClose', async () => stopping.abort());
    const ofSite = { params: siteIdParams };

    app.get(
      '/sites/:site/container-logs',
      { schema: { ...ofSite, querystring: pageQuery } },
      async (request) => containerLogs.page(request.params.site, request.query),
    );

    app.get(
      '/sites/:site/container-logs/newer',
      // A live view asks again and again.
      { schema: { ...ofSite, querystring: newerQuery }, logLevel: 'warn' },
      async (request, reply) => {
        const { waitSeconds, ...query } = request.query;
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        const signal = AbortSignal.any([gone.signal, stopping.signal]);
        return await containerLogs.newer(request.params.site, query, waitSeconds * 1_000, signal);
      },
    );

    app.delete(
      '/sites/:site/container-logs',
      { schema: { ...ofSite, querystring: deletion } },
      async (request) => {
        await containerLogs.deleteUntil(request.params.site, new Date(request.query.until));
        return { deleted: true };
      },
    );

    app.get('/policy-refusals', { logLevel: 'warn' }, async () => ({ refusals: containerLogs.refusals() }));
  };
}
