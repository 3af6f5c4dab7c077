import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandOperator } from '../access/operators.ts';
import { demandAllowedImage } from '../containers/image.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { paged, sequenceQuery } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer } from '../view/plan.ts';
import { chosenSites } from './chosen-sites.ts';
import { imagesRoutes } from './images.routes.ts';
import { presentRollout, summaryOf } from './present.ts';
import { planRevert } from './revert-plan.ts';
import {
  findRollout,
  insertRollout,
  listRollouts,
  moveRollout,
  type RolloutRow,
  revertRollout,
  rolloutSites,
  siteCounts,
} from './rollouts.repository.ts';
import { newRollout, rolloutList, rolloutParams, rolloutPlan, rolloutView } from './rollouts.schema.ts';
import { allWaves } from './waves.ts';

/** Rollouts of an image over the instance's sites, for operators. `trigger` makes the runner check at once. */
export function rolloutsRoutes(context: Context, trigger: () => void): FastifyPluginAsyncZod {
  const { db, settings, clock } = context;

  async function found(id: string): Promise<RolloutRow> {
    const rollout = await findRollout(db, id);
    if (rollout === undefined) throw new ManagementProblem('unknown_rollout');
    return rollout;
  }

  const shown = async (id: string) => presentRollout(await found(id), await rolloutSites(db, id));

  return async (app) => {
    app.addHook('preHandler', async (request) => demandOperator(settings, request));
    await app.register(imagesRoutes(context));
    const shared = { tags: ['instance'] };

    app.post(
      '/image-rollouts',
      {
        config: { access: 'operate' },
        schema: {
          ...shared,
          operationId: 'startImageRollout',
          summary: 'Change the image of all or some sites, wave by wave',
          description:
            'Each change is a commit of one site in the operator’s name. A wave begins only when the host has applied the image for all sites of the one before and they were ready for `watchSeconds`. A site that is not ready when its wave begins is skipped, unless its newest commit changed the image. The first failure stops the rollout.',
          querystring: dryRunQuery,
          body: newRollout,
          response: {
            200: rolloutPlan,
            201: rolloutView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'rollout_active',
              'image_not_allowed',
            ),
          },
        },
      },
      async (request, reply) => {
        const { image, waves, watchSeconds, sites: names } = request.body;
        demandAllowedImage(image, settings);
        const sites = await chosenSites(db, names);
        if (isDryRun(request.query)) {
          const progress = sites.map((site) => ({ ...site, state: 'pending' as const, wave: null }));
          return {
            plan: {
              changes: sites.flatMap(({ site_id, image: from }) =>
                from === image ? [] : [{ path: `sites[${site_id}].image`, from, to: image }],
              ),
              waves: allWaves(progress, waves).map((wave) => wave.sites.map(({ site_id }) => site_id)),
            },
          };
        }
        const { subject, name, email } = callerOf(request);
        const rollout = await insertRollout(
          db,
          {
            image,
            waves: JSON.stringify(waves),
            watch_seconds: watchSeconds,
            actor: JSON.stringify({ subject, name, email }),
            request_id: request.id,
          },
          sites.map(({ site_id, container_id }) => ({ site_id, container_id })),
        );
        if (rollout === null) throw new ManagementProblem('rollout_active');
        trigger();
        const view = await shown(rollout.id);
        return reply.status(201).header('location', `/image-rollouts/${rollout.id}`).send(view);
      },
    );

    app.get(
      '/image-rollouts',
      {
        config: { access: 'operate' },
        schema: {
          ...shared,
          operationId: 'listImageRollouts',
          summary: 'List image rollouts, the newest first',
          querystring: z.strictObject(sequenceQuery),
          response: { 200: rolloutList, ...problems('invalid_request', 'forbidden') },
        },
      },
      async (request) => {
        const { limit, cursor } = request.query;
        const rows = await listRollouts(db, { limit: limit + 1, cursor });
        const { items, next } = paged(rows, limit, ({ seq }) => seq);
        const counts = await siteCounts(
          db,
          items.map(({ id }) => id),
        );
        return { items: items.map((row) => summaryOf(row, counts.get(row.id) ?? {})), next };
      },
    );

    app.get(
      '/image-rollouts/:id',
      {
        config: { access: 'operate' },
        schema: {
          ...shared,
          operationId: 'getImageRollout',
          summary: 'Read an image rollout, with the sites of each wave',
          params: rolloutParams,
          response: { 200: rolloutView, ...problems('invalid_request', 'forbidden', 'unknown_rollout') },
        },
      },
      (request) => shown(request.params.id),
    );

    app.post(
      '/image-rollouts/:id/stop',
      {
        config: { access: 'operate' },
        schema: {
          ...shared,
          operationId: 'stopImageRollout',
          summary: 'Begin no further wave; the current one is followed to its end',
          params: rolloutParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            202: rolloutView,
            ...problems('invalid_request', 'forbidden', 'unknown_rollout', 'rollout_ended'),
          },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const { status } = await found(id);
        if (status !== 'running' && status !== 'stopping') throw new ManagementProblem('rollout_ended');
        if (isDryRun(request.query)) {
          const change = { path: 'status', from: status, to: 'stopping' };
          return { plan: { changes: status === 'running' ? [change] : [] } };
        }
        await moveRollout(db, id, ['running'], { status: 'stopping' });
        trigger();
        return reply.status(202).send(await shown(id));
      },
    );

    app.post(
      '/image-rollouts/:id/back',
      {
        config: { access: 'operate' },
        schema: {
          ...shared,
          operationId: 'revertImageRollout',
          summary: 'Set the earlier image again on each site that the rollout has changed, all at once',
          description:
            'Also stops the rollout. Sites whose image someone else has changed afterwards keep that image. After a failure, the request can be repeated.',
          params: rolloutParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            202: rolloutView,
            ...problems('invalid_request', 'forbidden', 'unknown_rollout', 'rollout_active'),
          },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const rollout = await found(id);
        if (isDryRun(request.query)) return { plan: { changes: await planRevert(db, rollout) } };
        if (rollout.status !== 'reverting') {
          const hasBegun = await revertRollout(db, id, clock.date());
          if (!hasBegun) throw new ManagementProblem('rollout_active');
          trigger();
        }
        return reply.status(202).send(await shown(id));
      },
    );
  };
}
