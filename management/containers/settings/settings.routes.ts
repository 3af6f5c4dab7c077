import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { encryptFor } from '../../../sites/manifest/secrets.ts';
import type { Context } from '../../context/context.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { problems } from '../../http/openapi.ts';
import { changeHeaders, containerParams } from '../../view/container-view.ts';
import { dryRunQuery } from '../../view/plan.ts';
import type { Projector } from '../change.service.ts';
import { changer, REFUSALS } from '../changes.routes.ts';
import { canonicalConfig } from '../container-config.ts';
import { changeAnswer } from '../dry-run.ts';
import { domainOrder, newConfig, protection, suspension } from './settings.schema.ts';
import { reorderDomains } from './settings-edits.ts';

/** Changes of a live container that PATCH doesn't make, each a commit in the caller's name. */
export function settingsRoutes(context: Context, projection: Projector): FastifyPluginAsyncZod {
  const { settings } = context;
  const change = changer(context, projection);
  const shared = {
    tags: ['containers'],
    params: containerParams,
    headers: changeHeaders,
    querystring: dryRunQuery,
  };

  return async (app) => {
    app.put(
      '/server-containers/:id/config',
      {
        config: { access: 'edit' },
        schema: {
          ...shared,
          operationId: 'setContainerConfig',
          summary: 'Replace the container configuration, for example after its auth was rotated',
          description:
            'It is encrypted for the host, and no answer contains it. The containers are replaced by a swap.',
          body: newConfig,
          response: { 200: changeAnswer, ...problems(...REFUSALS, 'invalid_container_config') },
        },
      },
      async (request, reply) => {
        const config = canonicalConfig(request.body.containerConfigB64);
        const containerConfig = await encryptFor(settings.ageRecipient, request.params.id, config);
        return await change(request, reply, {
          id: request.params.id,
          subject: 'Set the container configuration of',
          purpose: 'edit',
          edit: (current) => ({ ...current, containerConfig }),
        });
      },
    );

    app.post(
      '/server-containers/:id/suspend',
      {
        config: { access: 'act' },
        schema: {
          ...shared,
          operationId: 'suspendContainer',
          summary: 'Let changes of the container wait, or switch its serving off',
          description:
            'Without `serving: false`, the site keeps serving as it is. With it, the edge answers nothing of the site, and its pages keep their fallback. Switching the serving off is itself a change, so it is refused while the changes of the container wait.',
          body: suspension,
          response: { 200: changeAnswer, ...problems(...REFUSALS) },
        },
      },
      (request, reply) => {
        const { serving } = request.body;
        return change(request, reply, {
          id: request.params.id,
          subject: serving ? 'Suspend' : 'Switch off the serving of',
          edit: (current) => {
            if (serving) return { ...current, suspend: true };
            if (!current.suspend) return { ...current, serving: false };
            const detail =
              'the container is suspended, so this change would wait, too: resume the container first';
            throw new ManagementProblem('wrong_status', { detail });
          },
        });
      },
    );

    app.post(
      '/server-containers/:id/resume',
      {
        config: { access: 'act' },
        schema: {
          ...shared,
          operationId: 'resumeContainer',
          summary: 'Apply the changes that wait, and all later ones; the edge serves the site again',
          response: { 200: changeAnswer, ...problems(...REFUSALS) },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Resume',
          edit: ({ serving: _, ...current }) => ({ ...current, suspend: false }),
        }),
    );

    app.post(
      '/server-containers/:id/protect',
      {
        config: { access: 'act' },
        schema: {
          ...shared,
          operationId: 'protectContainer',
          summary: 'Protect the container from removal, or end that',
          body: protection,
          response: { 200: changeAnswer, ...problems(...REFUSALS) },
        },
      },
      (request, reply) => {
        const { protect } = request.body;
        return change(request, reply, {
          id: request.params.id,
          subject: protect ? 'Protect' : 'End the protection of',
          edit: (current) => ({ ...current, protect }),
        });
      },
    );

    app.put(
      '/server-containers/:id/domains/order',
      {
        config: { access: 'edit' },
        schema: {
          ...shared,
          operationId: 'orderDomains',
          summary: 'Order the domains; the first one is served even without multi_domain',
          body: domainOrder,
          response: { 200: changeAnswer, ...problems(...REFUSALS) },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Order the domains of',
          purpose: 'edit',
          edit: (current) => reorderDomains(current, request.body.domains),
        }),
    );
  };
}
