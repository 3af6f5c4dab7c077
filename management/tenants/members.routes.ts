import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { TenantRef } from '../access/tenants.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { dryRunQuery, planAnswer } from '../view/plan.ts';
import { demandTenant } from './access.ts';
import { memberPage, memberParams, memberRole, memberView } from './member.schema.ts';
import { withMember, withoutMember } from './members.ts';
import { answerChange, TENANT_REFUSALS, type TenantParts } from './requests.ts';
import type { Tenant } from './tenant-file.ts';
import { listMembers } from './tenants.repository.ts';
import { memberQuery, tenantHeaders, tenantParams } from './tenants.schema.ts';

/** What is different between the members of a client and those of an organisation. */
const KINDS = {
  clients: { one: 'client', withArticle: 'a client', operation: '' },
  organisations: { one: 'organisation', withArticle: 'an organisation', operation: 'OfOrganisation' },
} as const;

/** Members of clients, or of organisations. Each change is a commit in the caller's name. */
export function membersRoutes(parts: TenantParts, kind: TenantRef['kind']): FastifyPluginAsyncZod {
  const { context } = parts;
  const { one, withArticle, operation } = KINDS[kind];
  const unknown = `unknown_${one}` as const;
  const tags = [kind];
  const existing = (current: Tenant | null): Tenant => {
    if (current === null) throw new ManagementProblem(unknown);
    return current;
  };

  return async (app) => {
    app.get(
      `/${kind}/:id/members`,
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: `listMembers${operation}`,
          summary: `List the members of ${withArticle}; service tokens are under /tokens`,
          tags,
          params: tenantParams,
          querystring: memberQuery,
          response: { 200: memberPage, ...problems('invalid_request', unknown) },
        },
      },
      async (request) => {
        const { id } = request.params;
        const { ref } = await demandTenant(context, { kind, id }, callerOf(request), 'read');
        const { limit, cursor } = request.query;
        const [after = ''] = keyFrom(cursor, z.tuple([z.string()])) ?? [];
        const rows = await listMembers(context.db, ref, { after, limit: limit + 1 });
        return listPage(rows, limit, ({ subject }) => [subject]);
      },
    );

    app.put(
      `/${kind}/:id/members/:subject`,
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: `putMember${operation}`,
          summary: `Give a subject a role in ${withArticle}; only owners can give or take the role of owner`,
          tags,
          params: memberParams,
          headers: tenantHeaders,
          querystring: dryRunQuery,
          body: memberRole,
          response: {
            200: z.union([memberView, planAnswer]),
            ...problems(...TENANT_REFUSALS, unknown, 'last_owner'),
          },
        },
      },
      async (request, reply) => {
        const { id, subject } = request.params;
        const { ref, tenant, role } = await demandTenant(context, { kind, id }, callerOf(request), 'act');
        const member = { subject, role: request.body.role };
        return await answerChange(parts, { request, reply }, ref, {
          subject: `Make ${subject} ${member.role} of the ${one} ${tenant.name}`,
          edit: (current) => withMember(existing(current), member, role),
          view: () => member,
        });
      },
    );

    app.delete(
      `/${kind}/:id/members/:subject`,
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: `removeMember${operation}`,
          summary: `Remove a subject from ${withArticle}; the subject’s event streams of it end`,
          tags,
          params: memberParams,
          headers: tenantHeaders,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            204: z.null().meta({ description: 'the subject is not a member any more' }),
            ...problems(...TENANT_REFUSALS, unknown, 'unknown_member', 'last_owner'),
          },
        },
      },
      async (request, reply) => {
        const { id, subject } = request.params;
        const { ref, tenant, role } = await demandTenant(context, { kind, id }, callerOf(request), 'act');
        return await answerChange(parts, { request, reply }, ref, {
          subject: `Remove ${subject} from the ${one} ${tenant.name}`,
          status: 204,
          edit: (current) => withoutMember(existing(current), subject, role),
          view: () => null,
        });
      },
    );
  };
}
