import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { sql } from 'kysely';
import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { demandContainerOrOperator } from '../access/containers.ts';
import type { Purpose } from '../access/roles.ts';
import { demandRoleIn, isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { visibleClients } from '../records/memberships.repository.ts';
import { isDryRun, planAnswer } from '../view/plan.ts';
import { demandDeletion, listDeletions } from './deletions.ts';
import { trafficPoints, type Whose } from './points.ts';
import { deletionList, deletionQuery, trafficQuery, trafficView } from './traffic.schema.ts';

const DAY_MS = 86_400_000;
/** Points of one answer: two days of minutes fit. */
const MOST_POINTS = 3_000;
/** Times of later years have a form that the database doesn't read. */
const LATEST = Date.parse('9999-01-01T00:00:00Z');
const params = z.strictObject({ id: givenId });
const tags = ['traffic'];

/** Sums of the requests by time, and their deletion. */
export function trafficRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, clock } = context;

  /** Throws the answer's problem unless the caller's role allows the purpose or the caller is an operator. */
  async function ownContainer(id: string, caller: Actor, purpose: Purpose): Promise<string[]> {
    await demandContainerOrOperator(context, id, caller, purpose);
    return [id];
  }
  async function ofClient(id: string, caller: Actor, purpose: Purpose): Promise<string[]> {
    await demandRoleIn(context, { kind: 'clients', id }, caller, purpose);
    const rows = await db.selectFrom('containers').select('id').where('client_id', '=', id).execute();
    return rows.map((row) => row.id);
  }
  async function points(scope: Whose, query: z.output<typeof trafficQuery>) {
    const { step, probes } = query;
    const to = query.to === undefined ? clock.date().getTime() : Date.parse(query.to);
    const from = query.from === undefined ? to - DAY_MS : Date.parse(query.from);
    const ms = step * 1_000;
    if (to > LATEST) {
      const message = `must not be after ${new Date(LATEST).toISOString()}`;
      throw new ManagementProblem('invalid_request', {
        detail: `to ${message}`,
        errors: [{ path: 'to', message }],
      });
    }
    const range = { from: new Date(Math.floor(from / ms) * ms), to: new Date(Math.ceil(to / ms) * ms) };
    if (from >= to || (range.to.getTime() - range.from.getTime()) / ms > MOST_POINTS) {
      const message =
        from >= to ? 'must be before `to`' : `leads to more than ${MOST_POINTS} points; choose a longer step`;
      throw new ManagementProblem('invalid_request', {
        detail: `from ${message}`,
        errors: [{ path: 'from', message }],
      });
    }
    return await trafficPoints(db, scope, { ...range, step, probes });
  }
  async function deletion(containers: string[], caller: Actor, query: unknown) {
    if (isDryRun(query)) {
      return {
        plan: { changes: containers.map((id) => ({ path: `traffic[${id}]`, from: 'kept', to: null })) },
      };
    }
    await demandDeletion(db, { containers, by: caller.subject, at: clock.date() });
    return { deletions: await listDeletions(db, containers) };
  }

  return async (app) => {
    app.get(
      '/traffic',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'getTraffic',
          summary:
            'Sum up the requests of all containers that the caller may read; operators see all of the installation',
          tags,
          querystring: trafficQuery,
          response: { 200: trafficView, ...problems('invalid_request') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const own = sql`select id from containers where client_id in (${visibleClients(db, caller)})`;
        return await points(isOperator(context, caller) ? 'all' : { containers: own }, request.query);
      },
    );

    for (const one of [
      {
        path: '/server-containers/:id/traffic',
        of: 'Container',
        unknown: 'unknown_container',
        find: ownContainer,
      },
      { path: '/clients/:id/traffic', of: 'Client', unknown: 'unknown_client', find: ofClient },
    ] as const) {
      const what = one.of === 'Container' ? 'a container' : 'all containers of a client';
      app.get(
        one.path,
        {
          config: { access: 'read', operators: true },
          schema: {
            operationId: `get${one.of}Traffic`,
            summary: `Sum up the requests of ${what}`,
            tags,
            params,
            querystring: trafficQuery,
            response: {
              200: trafficView,
              ...problems('invalid_request', one.unknown),
            },
          },
        },
        async (request) => {
          const ids = await one.find(request.params.id, callerOf(request), 'read');
          const containers = sql`select value::uuid from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb)`;
          return await points({ containers }, request.query);
        },
      );
      app.delete(
        one.path,
        {
          config: { access: 'own', operators: true },
          schema: {
            operationId: `delete${one.of}Traffic`,
            summary: `Delete the records of ${what} up to now: the sums immediately, the raw logs within hours`,
            tags,
            params,
            querystring: deletionQuery,
            response: {
              200: planAnswer,
              202: deletionList,
              ...problems('invalid_request', 'forbidden', one.unknown),
            },
          },
        },
        async (request, reply) => {
          const caller = callerOf(request);
          const ids = await one.find(request.params.id, caller, 'own');
          const answer = await deletion(ids, caller, request.query);
          return 'plan' in answer ? answer : reply.status(202).send(answer);
        },
      );
      app.get(
        `${one.path}/deletions`,
        {
          config: { access: 'read', operators: true },
          schema: {
            operationId: `list${one.of}TrafficDeletions`,
            summary: `Read the progress of the deletion of the records of ${what}`,
            tags,
            params,
            response: { 200: deletionList, ...problems('invalid_request', one.unknown) },
          },
        },
        async (request) => {
          const ids = await one.find(request.params.id, callerOf(request), 'read');
          return { deletions: await listDeletions(db, ids) };
        },
      );
    }
  };
}
