import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { type Selectable, sql } from 'kysely';
import { z } from 'zod';
import { isGuarded } from '../../gitops/report/approvable.ts';
import { demandOperator } from '../access/operators.ts';
import type { Context } from '../context/context.ts';
import type { Tables } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import { approvalView, newPlan, planList, planParams, plansQuery, planView } from './instance.schema.ts';
import { isKept, keepPlan, listPlans } from './plans.repository.ts';
import { instanceOf } from './provisioner.ts';

function presentPlan({
  report,
  ref,
  actor,
  created_at,
  approved_at,
}: Omit<Selectable<Tables['plans']>, 'checksum'>) {
  return {
    ...report,
    guarded: report.changes.filter(isGuarded).length,
    ref,
    actor,
    createdAt: created_at.toISOString(),
    approvedAt: approved_at?.toISOString() ?? null,
  };
}

/** Plans of the whole instance and their approval, for operators. */
export function plansRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, clock, repo, settings } = context;

  async function found(checksum: string) {
    const plan = await db
      .selectFrom('plans')
      .selectAll()
      .where('checksum', '=', checksum)
      .where(isKept)
      .executeTakeFirst();
    if (plan === undefined) throw new ManagementProblem('unknown_plan');
    return plan;
  }

  return async (app) => {
    app.addHook('preHandler', async (request) => demandOperator(settings, request));

    app.post(
      '/plans',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'createPlan',
          summary: 'Plan what the host would change for a revision; changes nothing',
          description:
            'A plan is kept for a week, by its checksum. A plan of a branch doesn’t replace a plan of the newest revision with the same changes. A dry run checks only whether the request is allowed, and keeps no plan.',
          tags: ['instance'],
          querystring: dryRunQuery,
          body: newPlan,
          response: {
            200: planAnswer,
            201: planView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_ref',
              'host_unavailable',
              'sites_repo_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        if (isDryRun(request.query)) return { plan: { changes: [] } };
        const ref = request.body.ref ?? null;
        const report = await instanceOf(context, request.id).plan(ref);
        const { checksum } = report;
        const made = { ref, report, actor: callerOf(request).subject };
        const kept = await keepPlan(db, ref === null ? null : await repo.head(), made);
        const plan = kept ?? { ...made, created_at: clock.date(), approved_at: null };
        return reply.status(201).header('location', `/plans/${checksum}`).send(presentPlan(plan));
      },
    );

    app.get(
      '/plans',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'listPlans',
          summary: 'List the plans that were made within a week, the newest first',
          tags: ['instance'],
          querystring: plansQuery,
          response: {
            200: planList,
            ...problems('invalid_request', 'forbidden', 'sites_repo_unavailable'),
          },
        },
      },
      async (request) => {
        const { limit, cursor, waiting } = request.query;
        const rows = await listPlans(db, {
          head: await repo.head(),
          onlyWaiting: waiting === '1',
          after: keyFrom(cursor, z.tuple([z.iso.datetime(), z.string()])),
          limit: limit + 1,
        });
        return listPage(rows, limit, ({ createdAt, checksum }) => [createdAt, checksum]);
      },
    );

    app.get(
      '/plans/:checksum',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'getPlan',
          summary: 'Read a plan',
          tags: ['instance'],
          params: planParams,
          response: { 200: planView, ...problems('invalid_request', 'forbidden', 'unknown_plan') },
        },
      },
      async (request) => presentPlan(await found(request.params.checksum)),
    );

    app.post(
      '/plans/:checksum/approve',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'approvePlan',
          summary: 'Approve the changes that guards hold in a plan of the newest revision',
          tags: ['instance'],
          params: planParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            202: approvalView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_plan',
              'plan_changed',
              'host_unavailable',
              'sites_repo_unavailable',
            ),
          },
        },
      },
      async (request, reply) => {
        const { checksum, report, ref } = await found(request.params.checksum);
        if (ref !== null && report.revision !== (await repo.head())) {
          throw new ManagementProblem('plan_changed', {
            detail:
              'only a plan of the newest revision can be approved; merge the branch and make a new plan',
          });
        }
        if (isDryRun(request.query)) {
          const guarded = report.changes.filter(isGuarded);
          return {
            plan: planOf(
              { approved: [] },
              { approved: guarded.map(({ site, target, key }) => `${site}: ${target} ${key}`) },
            ),
          };
        }
        const approval = await instanceOf(context, request.id).approve(checksum);
        await db
          .updateTable('plans')
          .set({ approved_at: sql<Date>`now()` })
          .where('checksum', '=', checksum)
          .execute();
        return reply.status(202).send(approval);
      },
    );
  };
}
