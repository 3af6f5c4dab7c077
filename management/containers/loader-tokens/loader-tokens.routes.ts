import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { demandContainer } from '../../access/containers.ts';
import type { Context } from '../../context/context.ts';
import { callerOf } from '../../http/auth.ts';
import { problems } from '../../http/openapi.ts';
import { changeHeaders, containerParams } from '../../view/container-view.ts';
import { dryRunQuery } from '../../view/plan.ts';
import type { Projector } from '../change.service.ts';
import { changer, dateAfter, GRACE_DAYS, REFUSALS } from '../changes.routes.ts';
import { newLoaderToken } from '../containers.schema.ts';
import { newToken } from '../draft.ts';
import { changeAnswer } from '../dry-run.ts';
import { rotateLoaderToken } from '../edits.ts';
import { loaderTokenParams, loaderTokens } from './loader-tokens.schema.ts';
import { revokeLoaderToken, tokensOf } from './tokens.ts';

/** The tokens by which the edge knows a container's loader. */
export function loaderTokensRoutes(context: Context, projection: Projector): FastifyPluginAsyncZod {
  const tags = ['containers'];
  const change = changer(context, projection);
  const today = () => dateAfter(context.clock.date().getTime(), 0);

  return async (app) => {
    app.get(
      '/server-containers/:id/loader-tokens',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listLoaderTokens',
          summary: 'List the loader tokens that the edge accepts',
          tags,
          params: containerParams,
          response: { 200: loaderTokens, ...problems('invalid_request', 'unknown_container') },
        },
      },
      async (request) => {
        const { manifest } = await demandContainer(context.db, request.params.id, callerOf(request), 'read');
        return tokensOf(manifest, today());
      },
    );

    // The older POST …/loader-token has the same operation under another name.
    for (const [path, operationId] of [
      ['loader-token', 'rotateLoaderToken'],
      ['loader-tokens/rotate', 'rotateLoaderTokens'],
    ] as const) {
      app.post(
        `/server-containers/:id/${path}`,
        {
          config: { access: 'act' },
          schema: {
            operationId,
            summary: 'Make a new loader token; the old one is accepted until the grace date',
            tags,
            params: containerParams,
            headers: changeHeaders,
            querystring: dryRunQuery,
            body: newLoaderToken,
            response: { 200: changeAnswer, ...problems(...REFUSALS, 'too_many_loader_tokens') },
          },
        },
        (request, reply) => {
          const until = request.body.graceUntil ?? dateAfter(context.clock.date().getTime(), GRACE_DAYS);
          return change(request, reply, {
            id: request.params.id,
            subject: 'Rotate the loader token of',
            edit: (current, draw) =>
              rotateLoaderToken(current, { token: newToken('lt', draw), until, today: today() }),
          });
        },
      );
    }

    app.delete(
      '/server-containers/:id/loader-tokens/:token',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'revokeLoaderToken',
          summary: 'End the acceptance of an old loader token before its grace date',
          tags,
          params: loaderTokenParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          response: { 200: changeAnswer, ...problems(...REFUSALS, 'unknown_loader_token') },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Revoke a loader token of',
          edit: (current) => revokeLoaderToken(current, request.params.token),
        }),
    );
  };
}
