import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { problems } from '../http/openapi.ts';
import { changeHeaders, containerParams, containerView, planHeader } from '../view/container-view.ts';
import { containerEtag, isKnown } from '../view/etag.ts';
import { dryRunQuery, isDryRun } from '../view/plan.ts';
import { presentContainer } from '../view/present.ts';
import type { Projector } from './change.service.ts';
import { newContainer, readHeaders } from './containers.schema.ts';
import { createContainer, type OperationRunner, planCreation } from './create.service.ts';
import { containerPlan } from './dry-run.ts';
import { planningOf } from './planning.ts';
import { planRemoval, removeContainer } from './remove.service.ts';

/** Creating, reading and removing containers. */
export function containersRoutes(
  context: Context,
  { runner, projection }: { readonly runner: OperationRunner; readonly projection: Projector },
): FastifyPluginAsyncZod {
  const { db, settings } = context;
  const tags = ['containers'];

  return async (app) => {
    app.post(
      '/server-containers',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'createContainer',
          summary: 'Create a server container for a client',
          description: 'Waits up to 25 s for the host to accept it. It becomes `active` in the background.',
          tags,
          headers: creationHeaders.extend(planHeader),
          querystring: dryRunQuery,
          body: newContainer,
          response: {
            200: containerPlan,
            202: containerView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_client',
              'client_archived',
              'limit_reached',
              'domain_in_use',
              'quota_reached',
              'plan_changed',
              'request_in_progress',
              'body_too_large',
              'unsupported_media_type',
              'invalid_container_config',
              'idempotency_key_reused',
              'provisioning_failed',
              'no_free_port',
            ),
          },
        },
      },
      async (request, reply) => {
        const creation = {
          body: request.body,
          caller: callerOf(request),
          requestId: request.id,
          planning: await planningOf(db, request),
        };
        if (isDryRun(request.query)) return await planCreation(context, creation);
        const idempotencyKey = request.headers['idempotency-key'];
        const container = await createContainer(context, runner, { ...creation, idempotencyKey });
        return reply.status(202).header('location', `/server-containers/${container.id}`).send(container);
      },
    );

    app.get(
      '/server-containers/:id',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'getContainer',
          summary: 'Read one container',
          tags,
          params: containerParams,
          headers: readHeaders,
          response: {
            200: containerView,
            304: z.null().meta({ description: 'the container has not changed since `If-None-Match`' }),
            ...problems('invalid_request', 'unknown_container'),
          },
        },
      },
      async (request, reply) => {
        const row = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const view = presentContainer(row, settings);
        const etag = containerEtag(row.manifest, view);
        reply.header('etag', etag);
        const known = isKnown(request.headers['if-none-match'], etag);
        return known ? reply.status(304).send(null) : view;
      },
    );

    app.delete(
      '/server-containers/:id',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'removeContainer',
          summary: 'Remove a container and everything that runs for it',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          response: {
            200: containerPlan,
            202: containerView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'container_busy',
              'site_protected',
              'manifest_broken',
              'precondition_failed',
              'plan_changed',
              'commit_refused',
              'projection_failed',
              'sites_repo_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        const removal = {
          id: request.params.id,
          caller: callerOf(request),
          requestId: request.id,
          ifMatch: request.headers['if-match'],
          planning: await planningOf(db, request),
        };
        if (isDryRun(request.query)) return await planRemoval(context, removal);
        const row = await removeContainer(context, projection, removal);
        runner.trigger();
        return reply.status(202).send(presentContainer(row, settings));
      },
    );
  };
}
