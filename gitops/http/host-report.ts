import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { siteId } from '../manifest/schema.ts';
import type { DaemonDeps } from './deps.ts';
import { ProblemError } from './errors.ts';
import { parse } from './request.ts';

const siteParams = z.object({ site: siteId });

/** What only this host sees of a site, for a verification: DNS answers, certificates, arriving address, preview servers. */
export function hostReportRoutes(app: FastifyInstance, { repo, reader, reportSite }: DaemonDeps): void {
  if (reportSite === undefined) return;
  app.get('/sites/:site/host-report', async (request) => {
    const { site } = parse(siteParams, request.params);
    const revision = await repo.head();
    const entry = revision === null ? undefined : (await reader.peek(revision)).sites.get(site);
    if (entry === undefined || entry.manifest?.state === 'absent') throw new ProblemError('unknown_site');
    if (entry.manifest === null) throw new ProblemError('site_stalled', entry.stalled?.message);
    return await reportSite(entry.manifest);
  });
}
