import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { callerOf } from '../http/auth.ts';
import { demandContainer } from '../containers/change.service.ts';
import { containerParams } from '../containers/containers.schema.ts';
import { presentContainer } from '../view/present.ts';
import type { Context } from '../context/context.ts';
import { problems } from '../http/openapi.ts';
import { listVerifications } from './verification.repository.ts';
import { verificationList, verifiedContainer } from './verification.schema.ts';
import { type Underway, verifyContainer } from './verify.service.ts';

/** Finding out whether a container does what it is for. */
export function verificationRoutes(context: Context): FastifyPluginAsyncZod {
  const tags = ['containers'];
  const underway: Underway = new Map();

  return async (app) => {
    app.post(
      '/server-containers/:id/verify',
      {
        schema: {
          operationId: 'verifyContainer',
          summary:
            'Check from outside and on its host that a container works, and say what to do where it doesn’t',
          description: 'Takes up to 10 seconds. The status becomes `verified` or `verification_failed`.',
          tags,
          params: containerParams,
          response: {
            200: verifiedContainer,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_container',
              'wrong_status',
              'verification_unavailable',
            ),
          },
        },
      },
      async (request) => {
        const { container, verification } = await verifyContainer(context, underway, {
          id: request.params.id,
          caller: callerOf(request),
          requestId: request.id,
        });
        return { container: presentContainer(container, context.settings), verification };
      },
    );

    app.get(
      '/server-containers/:id/verifications',
      {
        schema: {
          operationId: 'listVerifications',
          summary: 'Read the last ten verifications of a container, the newest first',
          tags,
          params: containerParams,
          response: { 200: verificationList, ...problems('invalid_request', 'unknown_container') },
        },
      },
      async (request) => {
        const { id } = await demandContainer(context, request.params.id, callerOf(request), 'read');
        return { verifications: await listVerifications(context.db, id) };
      },
    );
  };
}
