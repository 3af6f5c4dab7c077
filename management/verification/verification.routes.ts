import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { changeHeaders, containerParams } from '../view/container-view.ts';
import { dryRunQuery, isDryRun, planAnswer } from '../view/plan.ts';
import { presentContainer } from '../view/present.ts';
import { listVerifications } from './verification.repository.ts';
import { verificationList, verifiedContainer } from './verification.schema.ts';
import { type RunningVerifications, verifiableContainer, verifyContainer } from './verify.service.ts';

/** Verifies that a container works, and lists past verifications. */
export function verificationRoutes(context: Context): FastifyPluginAsyncZod {
  const tags = ['containers'];
  const running: RunningVerifications = new Map();

  return async (app) => {
    app.post(
      '/server-containers/:id/verify',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'verifyContainer',
          summary:
            'Check from outside and on its host that a container works, and say how to fix what doesn’t',
          description:
            'Takes up to 10 seconds. The status becomes `verified` or `verification_failed`. A dry run checks only whether the request is allowed.',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          response: {
            200: z.union([verifiedContainer, planAnswer]),
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'wrong_status',
              'precondition_failed',
              'verification_unavailable',
            ),
          },
        },
      },
      async (request) => {
        const asked = {
          id: request.params.id,
          caller: callerOf(request),
          requestId: request.id,
          ifMatch: request.headers['if-match'],
        };
        if (isDryRun(request.query)) {
          await verifiableContainer(context, asked);
          return { plan: { changes: [] } };
        }
        const { container, verification } = await verifyContainer(context, running, asked);
        return { container: presentContainer(container, context.settings), verification };
      },
    );

    app.get(
      '/server-containers/:id/verifications',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listVerifications',
          summary: 'List the last ten verifications of a container, the newest first',
          tags,
          params: containerParams,
          response: { 200: verificationList, ...problems('invalid_request', 'unknown_container') },
        },
      },
      async (request) => {
        const { id } = await demandContainer(context.db, request.params.id, callerOf(request), 'read');
        return { verifications: await listVerifications(context.db, id) };
      },
    );
  };
}
