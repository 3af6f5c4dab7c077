import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';
import { siteIdParams } from './request.ts';

/**
 * What only this host can observe of a site: DNS answers, certificates, the visitor's address, preview servers; and whether
 * the edge answers for it.
 */
export function hostReportRoutes({
  repo,
  reader,
  reportSite,
  askEdge,
}: Pick<DaemonDeps, 'repo' | 'reader' | 'reportSite' | 'askEdge'>): FastifyPluginAsyncZod {
  async function newestManifest(site: string): Promise<LoadedManifest> {
    const revision = await repo.head();
    const entry = revision === null ? undefined : (await reader.peek(revision)).sites.get(site);
    if (entry === undefined || entry.manifest?.state === 'absent') {
      throw new ProvisionerProblem('unknown_site');
    }
    if (entry.manifest === null) {
      throw new ProvisionerProblem('site_stalled', { detail: entry.stalled?.message });
    }
    return entry.manifest;
  }

  return async (app) => {
    const params = { schema: { params: siteIdParams } };
    if (reportSite !== undefined) {
      app.get('/sites/:site/host-report', params, async (request) =>
        reportSite(await newestManifest(request.params.site)),
      );
    }
    if (askEdge !== undefined) {
      app.get('/sites/:site/edge', params, async (request) =>
        askEdge(await newestManifest(request.params.site)),
      );
    }
  };
}
