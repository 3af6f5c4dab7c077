import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { readManifest } from '../../../sites/manifest/read.ts';
import { containerResources } from '../../../sites/manifest/resources/schema.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import { clientKeysOf } from '../../../sites/requests/container.ts';
import { demandContainer } from '../../access/containers.ts';
import type { Context } from '../../context/context.ts';
import type { Actor } from '../../db/database.ts';
import { callerOf } from '../../http/auth.ts';
import { creationHeaders } from '../../http/creation-headers.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { problems } from '../../http/openapi.ts';
import { containerParams, containerView, planHeader } from '../../view/container-view.ts';
import { dryRunQuery, isDryRun } from '../../view/plan.ts';
import { createContainer, type OperationRunner, planCreation } from '../create.service.ts';
import { containerPlan, currentText } from '../dry-run.ts';
import { demandAllowedImage, demandResources } from '../image.ts';
import { planningOf } from '../planning.ts';
import { newClone } from './clone.schema.ts';

/** A new container with the settings of another one. */
export function cloneRoutes(context: Context, runner: OperationRunner): FastifyPluginAsyncZod {
  return async (app) => {
    app.post(
      '/server-containers/:id/clone',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'cloneContainer',
          summary:
            'Create a container with the settings of another one, and names, tokens and ports of its own',
          description:
            'Features, modules, rules of consent, `tls`, image, resources and, unless another one is given, the container configuration are copied; a service account, custom domains and same-origin paths are not.',
          tags: ['containers'],
          params: containerParams,
          headers: creationHeaders.extend(planHeader),
          querystring: dryRunQuery,
          body: newClone,
          response: {
            200: containerPlan,
            202: containerView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'unknown_client',
              'wrong_status',
              'manifest_broken',
              'domain_in_use',
              'client_archived',
              'limit_reached',
              'quota_reached',
              'plan_changed',
              'request_in_progress',
              'invalid_container_config',
              'image_not_allowed',
              'idempotency_key_reused',
              'provisioning_failed',
              'no_free_port',
              'sites_repo_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { settings } = context;
        const source = await sourceOf(context, request.params.id, caller);
        const { clientId = source.client, containerConfigB64 } = request.body;
        if (clientId !== source.client && containerConfigB64 === undefined) {
          const detail = 'containerConfigB64 is missing: a configuration is not copied to another client';
          throw new ManagementProblem('invalid_request', { detail });
        }
        // Refused: an image no longer allowed, and resources that the caller may not set.
        demandAllowedImage(source.image, settings);
        demandResources(source.resources, containerResources.parse({}), caller, settings);
        const creation = {
          ...cloneOf(source, request.body),
          repeated: { source: source.container, ...request.body },
          caller,
          requestId: request.id,
          planning: await planningOf(context.db, request),
        };
        if (isDryRun(request.query)) return await planCreation(context, creation);
        const idempotencyKey = request.headers['idempotency-key'];
        const container = await createContainer(context, runner, { ...creation, idempotencyKey });
        return reply.status(202).header('location', `/server-containers/${container.id}`).send(container);
      },
    );
  };
}

/** The manifest in git of the container that is cloned. Throws where the caller may not act on it. */
async function sourceOf(context: Context, id: string, caller: Actor): Promise<Manifest> {
  const row = await demandContainer(context.db, id, caller, 'act');
  const text = await currentText(context, row.site_id);
  const parsed = text === null ? null : await readManifest(text, `${row.site_id}.yaml`);
  if (parsed !== null && !parsed.ok) {
    throw new ManagementProblem('manifest_broken', { errors: parsed.problems });
  }
  if (parsed === null || parsed.manifest.state === 'absent') {
    throw new ManagementProblem('wrong_status', { detail: `the container is ${row.status}` });
  }
  return parsed.manifest;
}

function cloneOf(source: Manifest, { clientId = source.client, ...body }: z.output<typeof newClone>) {
  const { features, modules, tls, containerConfig, image, resources } = source;
  return {
    body: {
      ...body,
      clientId,
      features,
      modules,
      tls: tls.mode === 'uploaded' ? tls.others : tls.mode,
      ...clientKeysOf(source),
    },
    copied: { containerConfig, image, resources },
  };
}
