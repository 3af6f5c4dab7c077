import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { givenId } from '../../../sites/manifest/schema.ts';
import { demandRole } from '../../access/roles.ts';
import { demandOpen } from '../../access/tenants.ts';
import type { Context } from '../../context/context.ts';
import { undone } from '../../db/undone.ts';
import { callerOf } from '../../http/auth.ts';
import { MANAGEMENT_ERRORS, type ManagementErrorCode, type ManagementProblem } from '../../http/errors.ts';
import { examples } from '../../http/examples.ts';
import { problems } from '../../http/openapi.ts';
import { releasePlaces } from '../../records/places.repository.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../../view/plan.ts';
import { changeContainer, type Projector } from '../change.service.ts';
import { demandQuota, holdQuota } from '../quota.ts';
import { refusals, transferOf, transferRefusal } from './judge.ts';

const EXAMPLE_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';

const transfer = z
  .strictObject({
    containers: z.array(givenId).min(1).max(100),
    to: givenId.meta({ description: 'id of the client that gets them' }),
    ifMatch: z.record(givenId, z.string().max(1024)).default({}).meta({
      description: 'by container id, the `etag` of a GET: a container that has changed since is refused',
    }),
  })
  .meta(examples({ 'one container': { containers: [EXAMPLE_ID], to: EXAMPLE_ID } }));

const codes = Object.keys(MANAGEMENT_ERRORS) as [ManagementErrorCode, ...ManagementErrorCode[]]; // Object.keys drops the key type
const transferred = z
  .object({
    items: z.array(
      z.object({
        id: z.uuid(),
        status: z.enum(['transferred', 'refused']),
        code: z.enum(codes).nullable(),
        detail: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'Transfer', description: 'in the order of the request; a refused container is unchanged' });

/** Gives containers to another client, by one commit for each. */
export function transferRoutes(context: Context, projection: Projector): FastifyPluginAsyncZod {
  const { db, settings } = context;

  return async (app) => {
    app.post(
      '/clients/:id/transfer',
      {
        config: { access: 'own' },
        schema: {
          operationId: 'transferContainers',
          summary: 'Give containers to another client; needs the role owner in both',
          description: 'Containers with a registrable domain in common are refused unless all are listed.',
          tags: ['clients'],
          params: z.strictObject({ id: givenId }),
          querystring: dryRunQuery,
          body: transfer,
          response: {
            200: z.union([transferred, planAnswer]),
            ...problems('invalid_request', 'forbidden', 'unknown_client', 'client_archived', 'limit_reached'),
          },
        },
      },
      async (request) => {
        const { id: from } = request.params;
        const { containers, to, ifMatch } = request.body;
        const caller = callerOf(request);
        await demandRole(db, from, caller.subject, 'own');
        await demandRole(db, to, caller.subject, 'own');
        await demandOpen(db, { kind: 'clients', id: to });
        const ids = [...new Set(containers)];
        const transfer = { from, to, caller, requestId: request.id, ifMatch };
        const refused = await refusals(context, transfer, ids);
        const allowed = ids.filter((id) => !refused.has(id));
        if (isDryRun(request.query)) {
          await undone(db, (trx) => demandQuota(trx, settings, to, allowed));
          const at = (client: string) => ({ containers: allowed.map((id) => ({ id, client })) });
          return { plan: planOf(at(from), at(to)) };
        }
        const move = async (id: string) => {
          const refusal = refused.get(id);
          if (refusal !== undefined) return itemOf(id, refusal);
          try {
            await changeContainer(context, projection, transferOf(transfer, id));
            return itemOf(id, null);
          } catch (error) {
            return itemOf(id, transferRefusal(context, { ...transfer, id }, error));
          }
        };
        const change = randomUUID();
        await holdQuota(db, settings, to, { change, containers: allowed });
        // Concurrent commits are pushed together.
        const items = await Promise.all(ids.map(move));
        // A container whose commit the database doesn't show yet stays counted for a while.
        if (items.every(({ code }) => code !== 'projection_failed' && code !== 'sites_repo_unavailable')) {
          await releasePlaces(db, change);
        }
        return { items };
      },
    );
  };
}

function itemOf(id: string, refusal: ManagementProblem | null) {
  if (refusal === null) return { id, status: 'transferred' as const, code: null, detail: null };
  return { id, status: 'refused' as const, code: refusal.code, detail: refusal.message };
}
