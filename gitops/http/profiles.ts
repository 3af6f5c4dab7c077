import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { siteId } from '../../sites/manifest/schema.ts';
import type { DaemonDeps } from './deps.ts';

/** The visitor's id as the cookie `_fpid` has it. */
const profileParams = z.object({ site: siteId, visitor: z.string().regex(/^[0-9a-f]{32}$/) });
/** The URL names a visitor, so Fastify's two log lines per request are off. */
const OPTIONS = { schema: { params: profileParams }, logLevel: 'warn' } as const;
/** Cloudflare answers in a second or two; a rate limit may add more. */
const TIMEOUT_MS = 12_000;

/** What the edge keeps of one visitor of a site: read and deleted when the visitor asks for it. */
export function profileRoutes({ profiles }: Pick<DaemonDeps, 'profiles'>): FastifyPluginAsyncZod {
  return async (app) => {
    if (profiles === undefined) return;
    app.get('/sites/:site/profiles/:visitor', OPTIONS, async (request) => {
      const { site, visitor } = request.params;
      return { profile: await profiles.profile(site, visitor, AbortSignal.timeout(TIMEOUT_MS)) };
    });
    app.delete('/sites/:site/profiles/:visitor', OPTIONS, async (request) => {
      const { site, visitor } = request.params;
      await profiles.forgetProfile(site, visitor, AbortSignal.timeout(TIMEOUT_MS));
      return { deleted: true };
    });
  };
}
