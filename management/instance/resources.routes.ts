import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { isCertificate } from '../../gitops/report/is-certificate.ts';
import type { ShownSite } from '../../gitops/report/report.ts';
import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { hostDetail } from '../lifecycle/host-detail.ts';
import { textsWithoutForeignNames } from '../records/foreign-names.repository.ts';
import { containerParams } from '../view/container-view.ts';
import { resourceTree } from './instance.schema.ts';
import { instanceOf } from './provisioner.ts';

/** The targets from the host outwards. Those that aren't here come last. */
const ORDER = ['network', 'policy', 'containers', 'proxy', 'certificate', 'kv', 'route', 'dns'];
/** The states that are faults or end by themselves, the worst first. */
const WORST = ['failed', 'conflict', 'expired', 'drifted', 'pending_dns', 'pending_certificate', 'pending'];

/** What a container's site consists of on its host, with the state of each part. */
export function resourcesRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, clock } = context;
  return async (app) => {
    app.get(
      '/server-containers/:id/resources',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listResources',
          summary: 'Read what a container consists of on its host',
          tags: ['containers'],
          params: containerParams,
          response: {
            200: resourceTree,
            ...problems('invalid_request', 'unknown_container', 'host_unavailable'),
          },
        },
      },
      async (request) => {
        const row = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const site = await instanceOf(context, request.id).site(row.site_id);
        const { ready, reason, message, desired, applied } = site;
        const texts = [hostDetail(reason, message), ...site.resources.flatMap(textsOf)];
        const [shown = '', ...rest] = await textsWithoutForeignNames(db, row.id, texts);
        const resources = site.resources.map((one, index) => presented(one, rest.slice(index * 2)));
        const asOf = clock.date().toISOString();
        return { asOf, ready, reason, message: shown, desired, applied, targets: targetsOf(resources) };
      },
    );
  };
}

type Resource = ShownSite['resources'][number];

function textsOf(one: Resource): [key: string, detail: string] {
  return [one.key, (isCertificate(one) ? one.reason : one.lastError) ?? ''];
}

/** A resource with its texts as the client may read them. */
function presented(one: Resource, [key = '', detail = '']: readonly string[]) {
  const { target, state } = one;
  const times = isCertificate(one)
    ? { nextAt: one.nextCheck, notAfter: one.notAfter }
    : { nextAt: one.nextRetry ?? null, notAfter: null };
  return { target, shown: { key, state, detail: detail || null, ...times } };
}

function targetsOf(resources: readonly ReturnType<typeof presented>[]) {
  const byTarget = Map.groupBy(resources, ({ target }) => target);
  const rank = (target: string) => (ORDER.includes(target) ? ORDER.indexOf(target) : ORDER.length);
  return [...byTarget]
    .map(([target, all]) => ({
      target,
      state:
        WORST.find((state) => all.some(({ shown }) => shown.state === state)) ??
        all[0]?.shown.state ??
        'applied',
      resources: all.map(({ shown }) => shown),
    }))
    .sort((a, b) => rank(a.target) - rank(b.target));
}
