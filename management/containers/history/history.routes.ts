import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainer } from '../../access/containers.ts';
import type { Context } from '../../context/context.ts';
import { callerOf } from '../../http/auth.ts';
import { problems } from '../../http/openapi.ts';
import { changeHeaders, containerParams, containerView, planHeader } from '../../view/container-view.ts';
import { demandMatch } from '../../view/etag.ts';
import { dryRunQuery, isDryRun } from '../../view/plan.ts';
import { presentContainer } from '../../view/present.ts';
import type { Projector } from '../change.service.ts';
import { changer, REFUSALS } from '../changes.routes.ts';
import type { OperationRunner } from '../create.service.ts';
import { changeAnswer, containerPlan } from '../dry-run.ts';
import { planningOf } from '../planning.ts';
import { historyPage, historyQuery, revertBody } from './history.schema.ts';
import { readHistory, versionsOfCommit } from './history.service.ts';
import { planRestoration, restoreContainer } from './restore.service.ts';
import { addedNames, reverted } from './revert.ts';

/** What git makes possible: a container’s history, undoing one commit, and the restoration after a removal. */
export function historyRoutes(
  context: Context,
  {
    projection,
    runner,
  }: { readonly projection: Projector; readonly runner: Pick<OperationRunner, 'trigger'> },
): FastifyPluginAsyncZod {
  const { db, settings } = context;
  const tags = ['containers'];
  const change = changer(context, projection);

  return async (app) => {
    app.get(
      '/server-containers/:id/history',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listHistory',
          summary: 'Read who changed a container, when and what, the newest first',
          tags,
          params: containerParams,
          querystring: historyQuery,
          response: {
            200: historyPage,
            ...problems('invalid_request', 'unknown_container', 'unknown_commit', 'sites_repo_unavailable'),
          },
        },
      },
      async (request) => {
        const { site_id } = await demandContainer(db, request.params.id, callerOf(request), 'read');
        return await readHistory(context, site_id, request.query);
      },
    );

    app.post(
      '/server-containers/:id/revert',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'revertContainer',
          summary: 'Undo one commit of a container; later changes of other settings stay',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: revertBody,
          response: {
            200: changeAnswer,
            ...problems(
              ...REFUSALS,
              'unknown_commit',
              'revert_conflict',
              'domain_in_use',
              'quota_reached',
              'foreign_domain',
              'image_not_allowed',
            ),
          },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const { commit } = request.body;
        const caller = callerOf(request);
        const { site_id, manifest } = await demandContainer(db, id, caller, 'act');
        demandMatch(request.headers['if-match'], manifest);
        const versions = await versionsOfCommit(context, site_id, commit);
        return await change(request, reply, {
          id,
          subject: `Revert ${commit.slice(0, 12)} of`,
          claims: addedNames(versions),
          edit: (current) => reverted(current, versions, caller, settings),
        });
      },
    );

    app.post(
      '/server-containers/:id/restore',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'restoreContainer',
          summary: 'Bring a removed container back, with its tokens and its names, which must be free',
          tags,
          params: containerParams,
          headers: z.looseObject(planHeader),
          querystring: dryRunQuery,
          response: {
            200: containerPlan,
            202: containerView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'wrong_status',
              'client_archived',
              'limit_reached',
              'manifest_broken',
              'domain_in_use',
              'quota_reached',
              'no_free_port',
              'plan_changed',
              'commit_refused',
              'projection_failed',
              'sites_repo_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        const restoration = {
          id: request.params.id,
          caller: callerOf(request),
          requestId: request.id,
          planning: await planningOf(db, request),
        };
        if (isDryRun(request.query)) return await planRestoration(context, restoration);
        const row = await restoreContainer(context, projection, restoration);
        runner.trigger();
        return reply.status(202).send(presentContainer(row, settings));
      },
    );
  };
}
