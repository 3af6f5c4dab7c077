import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';
import { siteIdParams } from './request.ts';

/** What only this host can observe of a site: DNS answers, certificates, the visitor's address, preview servers. */
export function hostReportRoutes({ repo, reader, reportSite }: DaemonDeps): FastifyPluginAsyncZod {
  return async (app) => {
    if (reportSite === undefined) return;
    app.get('/sites/:site/host-report', { schema: { params: siteIdParams } }, async (request) => {
      const { site } = request.params;
      const revision = await repo.head();
      const entry = revision === null ? undefined : (await reader.peek(revision)).sites.get(site);
      if (entry === undefined || entry.manifest?.state === 'absent') {
        throw new ProvisionerProblem('unknown_site');
      }
      if (entry.manifest === null) {
        throw new ProvisionerProblem('site_stalled', { detail: entry.stalled?.message });
      }
      return await reportSite(entry.manifest);
    });
  };
}
