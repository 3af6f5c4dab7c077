import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandMayGive, isOperator } from '../access/tenants.ts';
import { callerOf } from '../http/auth.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import type { Role } from '../lifecycle/roles.ts';
import { roleInClient } from '../records/memberships.repository.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { dryRunQuery, planAnswer } from '../view/plan.ts';
import { demandTenant } from './access.ts';
import { listClients } from './lists.repository.ts';
import { answerChange, TENANT_REFUSALS, type TenantParts } from './requests.ts';
import { type Tenant, tenantTag } from './tenant-file.ts';
import {
  clientPage,
  clientPatch,
  clientQuery,
  clientView,
  createdClient,
  nameKey,
  newClient,
  tenantHeaders,
  tenantParams,
} from './tenants.schema.ts';

const tags = ['clients'];
const ref = (id: string) => ({ kind: 'clients', id }) as const;

/** Clients. Each change is a commit in the caller's name. */
export function clientsRoutes(parts: TenantParts): FastifyPluginAsyncZod {
  const { context } = parts;
  const { db } = context;

  const present = (id: string, { name, organisation, archivedAt }: Tenant, role: Role | null) => ({
    id,
    name,
    organisation,
    archivedAt,
    role,
  });

  return async (app) => {
    app.post(
      '/clients',
      {
        config: {
          access: 'operate',
          bodyOpensTo: 'acting',
          repeatable: {
            async demand(request) {
              const caller = callerOf(request);
              const { organisation = null, members } = request.body as z.output<typeof newClient>; // as the schema has parsed it
              if (organisation !== null) {
                const of = { kind: 'organisations', id: organisation } as const;
                const { role } = await demandTenant(context, of, caller, 'act');
                for (const member of members) demandMayGive(role, member.role);
              } else if (!isOperator(context, caller)) throw new ManagementProblem('forbidden');
            },
          },
        },
        schema: {
          operationId: 'createClient',
          summary: 'Create a client with its members',
          description: 'For operators; in an organisation also for its owners and admins.',
          tags,
          headers: creationHeaders,
          querystring: dryRunQuery,
          body: newClient,
          response: {
            200: planAnswer,
            201: createdClient,
            ...problems(
              ...TENANT_REFUSALS,
              'unknown_organisation',
              'organisation_archived',
              'request_in_progress',
              'idempotency_key_reused',
            ),
          },
        },
      },
      async (request, reply) => {
        const { name, organisation = null, members } = request.body;
        const id = request.newId;
        return await answerChange(parts, { request, reply }, ref(id), {
          subject: `Create the client ${name}`,
          status: 201,
          edit: (current) => current ?? { name, organisation, archivedAt: null, members },
          view: (made) => ({ ...present(id, made, null), members }),
        });
      },
    );

    app.get(
      '/clients',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listClients',
          summary: 'List the clients that the caller may read; operators see all',
          tags,
          querystring: clientQuery,
          response: { 200: clientPage, ...problems('invalid_request') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { limit, cursor, archived, ...filter } = request.query;
        const rows = await listClients(db, {
          ...filter,
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
      '/clients/:id',
      {
        config: { access: 'read', operators: true },
        schema: {
          operationId: 'getClient',
          summary: 'Read one client',
          tags,
          params: tenantParams,
          response: { 200: clientView, ...problems('invalid_request', 'unknown_client') },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { id } = request.params;
        const { tenant } = await demandTenant(context, ref(id), caller, 'read');
        reply.header('etag', tenantTag(ref(id), tenant));
        return present(id, tenant, await roleInClient(db, id, caller.subject));
      },
    );

    app.patch(
      '/clients/:id',
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: 'changeClient',
          summary: 'Rename a client; operators may also move it to another organisation',
          tags,
          params: tenantParams,
          headers: tenantHeaders,
          querystring: dryRunQuery,
          body: clientPatch,
          response: {
            200: z.union([clientView, planAnswer]),
            ...problems(
              ...TENANT_REFUSALS,
              'unknown_client',
              'unknown_organisation',
              'organisation_archived',
            ),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const { id } = request.params;
        const { tenant } = await demandTenant(context, ref(id), caller, 'act');
        const { name, organisation } = request.body;
        const mayMove = isOperator(context, caller);
        if (mayMove && organisation != null && organisation !== tenant.organisation) {
          await demandTenant(context, { kind: 'organisations', id: organisation }, caller, 'read');
        }
        return await answerChange(parts, { request, reply }, ref(id), {
          subject: `Change the client ${tenant.name}`,
          edit: (current) => {
            const before = existing(current);
            // Compared with git, because the database may be behind.
            const isMove = organisation !== undefined && organisation !== before.organisation;
            if (isMove && !mayMove) throw new ManagementProblem('forbidden');
            return {
              ...before,
              ...(name === undefined ? {} : { name }),
              ...(organisation === undefined ? {} : { organisation }),
            };
          },
          view: (changed) => present(id, changed, null),
        }).then(async (answer) =>
          'plan' in answer ? answer : { ...answer, role: await roleInClient(db, id, caller.subject) },
        );
      },
    );

    for (const isArchiving of [true, false]) {
      app.post(
        isArchiving ? '/clients/:id/archive' : '/clients/:id/unarchive',
        {
          config: { access: 'own', operators: true, inArchived: true },
          schema: {
            operationId: isArchiving ? 'archiveClient' : 'unarchiveClient',
            summary: isArchiving
              ? 'Hide a client that has no containers any more'
              : 'Show an archived client again',
            tags,
            params: tenantParams,
            headers: tenantHeaders,
            querystring: dryRunQuery,
            response: {
              200: z.union([clientView, planAnswer]),
              ...problems(
                ...TENANT_REFUSALS,
                'unknown_client',
                isArchiving ? 'client_in_use' : 'organisation_archived',
              ),
            },
          },
        },
        async (request, reply) => {
          const caller = callerOf(request);
          const { id } = request.params;
          const { tenant } = await demandTenant(context, ref(id), caller, 'own');
          const role = await roleInClient(db, id, caller.subject);
          const now = context.clock.date().toISOString();
          return await answerChange(parts, { request, reply }, ref(id), {
            subject: `${isArchiving ? 'Archive' : 'Unarchive'} the client ${tenant.name}`,
            edit: (current) => {
              const { archivedAt, ...rest } = existing(current);
              return { ...rest, archivedAt: isArchiving ? (archivedAt ?? now) : null };
            },
            view: (changed) => present(id, changed, role),
          });
        },
      );
    }
  };
}

/** Throws if the client was removed in the meantime. */
function existing(current: Tenant | null): Tenant {
  if (current === null) throw new ManagementProblem('unknown_client');
  return current;
}
