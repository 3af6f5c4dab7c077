import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isOperator } from '../access/tenants.ts';
import { callerOf } from '../http/auth.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import type { Role } from '../lifecycle/roles.ts';
import { roleInOrganisation } from '../records/memberships.repository.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { dryRunQuery, planAnswer } from '../view/plan.ts';
import { demandTenant } from './access.ts';
import { listClients, listOrganisations } from './lists.repository.ts';
import { answerChange, TENANT_REFUSALS, type TenantParts } from './requests.ts';
import { type Tenant, tenantTag } from './tenant-file.ts';
import {
  clientPage,
  createdOrganisation,
  nameKey,
  newOrganisation,
  organisationPage,
  organisationPatch,
  organisationQuery,
  organisationView,
  tenantHeaders,
  tenantParams,
} from './tenants.schema.ts';

const tags = ['organisations'];
const ref = (id: string) => ({ kind: 'organisations', id }) as const;

/** Organisations: a member of one has one role in all its clients. Each change is a commit in the caller's name. */
export function organisationsRoutes(parts: TenantParts): FastifyPluginAsyncZod {
  const { context } = parts;
  const { db } = context;

  const present = (id: string, { name, archivedAt }: Tenant, role: Role | null) => ({
    id,
    name,
    archivedAt,
    role,
  });

  return async (app) => {
    app.post(
      '/organisations',
      {
        config: {
          access: 'operate',
          repeatable: {
            async demand(request) {
              if (!isOperator(context, callerOf(request))) throw new ManagementProblem('forbidden');
            },
          },
        },
        schema: {
          operationId: 'createOrganisation',
          summary: 'Create an organisation with its members',
          tags,
          headers: creationHeaders,
          querystring: dryRunQuery,
          body: newOrganisation,
          response: {
            200: planAnswer,
            201: createdOrganisation,
            ...problems(...TENANT_REFUSALS, 'request_in_progress', 'idempotency_key_reused'),
          },
        },
      },
      async (request, reply) => {
        const { name, members } = request.body;
        const id = request.newId;
        return await answerChange(parts, { request, reply }, ref(id), {
          subject: `Create the organisation ${name}`,
          status: 201,
          edit: (current) => current ?? { name, organisation: null, archivedAt: null, members },
          view: (made) => ({ ...present(id, made, null), members }),
        });
      },
    );

    app.get(
      '/organisations',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listOrganisations',
          summary: 'List the organisations that the caller is a member of; operators see all',
          tags,
          querystring: organisationQuery,
          response: { 200: organisationPage, ...problems('invalid_request') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { limit, cursor, archived, q } = request.query;
        const rows = await listOrganisations(db, {
          q,
          subject: caller.subject,
          all: isOperator(context, caller),
          archived: archived === '1',
          after: keyFrom(cursor, nameKey),
          limit: limit + 1,
        });
        return listPage(rows, limit, ({ name, id }) => [name, id]);
      },
    );

    app.get(
      '/organisations/:id',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'getOrganisation',
          summary: 'Read one organisation',
          tags,
          params: tenantParams,
          response: { 200: organisationView, ...problems('invalid_request', 'unknown_organisation') },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { id } = request.params;
        const { tenant } = await demandTenant(context, ref(id), caller, 'read');
        reply.header('etag', tenantTag(ref(id), tenant));
        return present(id, tenant, await roleInOrganisation(db, id, caller.subject));
      },
    );

    app.patch(
      '/organisations/:id',
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: 'changeOrganisation',
          summary: 'Rename an organisation',
          tags,
          params: tenantParams,
          headers: tenantHeaders,
          querystring: dryRunQuery,
          body: organisationPatch,
          response: {
            200: z.union([organisationView, planAnswer]),
            ...problems(...TENANT_REFUSALS, 'unknown_organisation'),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { id } = request.params;
        const { tenant } = await demandTenant(context, ref(id), caller, 'act');
        const role = await roleInOrganisation(db, id, caller.subject);
        const { name } = request.body;
        return await answerChange(parts, { request, reply }, ref(id), {
          subject: `Change the organisation ${tenant.name}`,
          edit: (current) => ({ ...(current ?? tenant), name }),
          view: (changed) => present(id, changed, role),
        });
      },
    );

    for (const isArchiving of [true, false]) {
      app.post(
        isArchiving ? '/organisations/:id/archive' : '/organisations/:id/unarchive',
        {
          config: { access: 'own', operators: true, inArchived: true },
          schema: {
            operationId: isArchiving ? 'archiveOrganisation' : 'unarchiveOrganisation',
            summary: isArchiving
              ? 'Archive an organisation whose clients are all archived'
              : 'Show an archived organisation again',
            tags,
            params: tenantParams,
            headers: tenantHeaders,
            querystring: dryRunQuery,
            response: {
              200: z.union([organisationView, planAnswer]),
              ...problems(
                ...TENANT_REFUSALS,
                'unknown_organisation',
                ...(isArchiving ? (['organisation_in_use'] as const) : []),
              ),
            },
          },
        },
        async (request, reply) => {
          const caller = callerOf(request);
          const { id } = request.params;
          const { tenant } = await demandTenant(context, ref(id), caller, 'own');
          const role = await roleInOrganisation(db, id, caller.subject);
          const now = context.clock.date().toISOString();
          return await answerChange(parts, { request, reply }, ref(id), {
            subject: `${isArchiving ? 'Archive' : 'Unarchive'} the organisation ${tenant.name}`,
            edit: (current) => {
              const { archivedAt, ...rest } = current ?? tenant;
              return { ...rest, archivedAt: isArchiving ? (archivedAt ?? now) : null };
            },
            view: (changed) => present(id, changed, role),
          });
        },
      );
    }

    app.get(
      '/organisations/:id/clients',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'listClientsOfOrganisation',
          summary: 'List the clients of an organisation',
          tags,
          params: tenantParams,
          querystring: organisationQuery,
          response: { 200: clientPage, ...problems('invalid_request', 'unknown_organisation') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { id } = request.params;
        await demandTenant(context, ref(id), caller, 'read');
        const { limit, cursor, archived, q } = request.query;
        const rows = await listClients(db, {
          q,
          organisation: id,
          subject: caller.subject,
          all: true,
          archived: archived === '1',
          after: keyFrom(cursor, nameKey),
          limit: limit + 1,
        });
        return listPage(rows, limit, ({ name, id: client }) => [name, client]);
      },
    );
  };
}
