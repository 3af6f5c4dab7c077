import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { recipientsOf } from '../../sites/manifest/secrets.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import type { SourceProblem } from '../loop/source.ts';
import { hostState } from '../report/host-state.ts';
import { conditionsOf, type QuotaStatus } from '../report/quotas.ts';
import type { ShownSite, SiteStatus } from '../report/report.ts';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';
import { renderMetrics } from './metrics.ts';
import { shownQuotas } from './quotas.ts';
import { FOR_READERS } from './secrets.ts';
import { shownReason } from './shown-reason.ts';

const operationParams = z.object({ id: z.string() });
/** Doesn't use the schema of site ids: for an invalid id, the answer is `unknown_site`. */
const siteParams = z.object({ site: z.string() });

/** Status of the daemon, its operations and its sites. */
export function statusRoutes(deps: DaemonDeps): FastifyPluginAsyncZod {
  const { repo, loop, operations, certificatesOf } = deps;
  /** Why passes can't plan; newer revisions are then unknown. `null`: they can. Applied sites stay `ready`. */
  const planProblem = () =>
    loop.lastError === null ? null : `newer revisions are unknown: ${loop.lastError.message}`;

  const shown = (status: SiteStatus, quotas: readonly QuotaStatus[]): ShownSite => {
    const conditions = [...conditionsOf(quotas), ...(deps.conditionsOf?.(status.site) ?? [])];
    const site = {
      ...status,
      reason: shownReason(status, loop.sourceProblem),
      message: [status.message, sourceAge(loop.sourceProblem), planProblem() ?? '']
        .filter(Boolean)
        .join('; '),
      resources: [...status.resources, ...(certificatesOf?.(status.site) ?? [])],
      ...(conditions.length === 0 ? {} : { conditions }),
    };
    return { ...site, ...hostState(site) };
  };

  const allShown = () => {
    const quotas = shownQuotas(deps);
    return loop.statuses().map((status) => shown(status, quotas));
  };

  return async (app) => {
    app.get('/readyz', FOR_READERS, async (_request, reply) => {
      const { ready, revision, sourceProblem, lastPass } = loop;
      const status = ready ? 'ready' : sourceProblem === null ? 'not_ready' : 'source_unavailable';
      const seconds = lastPass === null ? null : Math.round(lastPass.ageMs / 1000);
      return reply.status(ready ? 200 : 503).send({
        ...{ status, revision, passSeconds: seconds, source: shownSource(sourceProblem) },
        // Management compares its own settings with these.
        ...{ service: 'provisioner', host: deps.host, recipients: await recipientsOf(deps.ageIdentity) },
      });
    });

    app.get('/metrics', FOR_READERS, async (_request, reply) =>
      reply
        .type('text/plain; version=0.0.4')
        .send(await renderMetrics(loop, operations, shownQuotas(deps), allShown(), deps.clock)),
    );

    app.get('/operations/:id', { ...FOR_READERS, schema: { params: operationParams } }, async (request) => {
      const operation = operations.get(request.params.id);
      if (operation === null) throw new ProvisionerProblem('unknown_operation');
      return operation;
    });

    app.get('/sites', FOR_READERS, async () => {
      const quotas = shownQuotas(deps);
      return {
        revision: loop.revision,
        problem: planProblem(),
        source: shownSource(loop.sourceProblem),
        quotas,
        hasAuthority: deps.hasAuthority ?? false,
        sites: allShown(),
      };
    });

    app.get('/sites/:site', { ...FOR_READERS, schema: { params: siteParams } }, async (request) => {
      const status = loop.status(request.params.site);
      if (status === null) throw new ProvisionerProblem('unknown_site');
      // The status must work without git, because it reports that git can't be read.
      const history = await repo.history(status.site, 20).catch((error: unknown) => {
        if (error instanceof SitesRepoError) return [];
        throw error;
      });
      return { ...shown(status, shownQuotas(deps)), history };
    });
  };
}

function sourceAge(problem: SourceProblem | null): string {
  return problem === null ? '' : `the sites repository has been unreadable for ${problem.seconds} s`;
}

/** `null`: the newest revision could be read. */
function shownSource(problem: SourceProblem | null) {
  if (problem === null) return null;
  const { since, seconds, error } = problem;
  return { since: since.toISOString(), seconds, message: error.message };
}
