import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { hashOf, secretOf } from '../access/secret-token.ts';
import {
  demandListed,
  demandMayGive,
  demandRoleIn,
  isOperator,
  LIST_REFUSALS,
  roleIn,
  type TenantRef,
  tenantOf,
} from '../access/tenants.ts';
import { demandWithinToken, tokenExpiry } from '../access/token-expiry.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { isAtLeast, roleFrom } from '../lifecycle/roles.ts';
import { type Places, withinPlaces } from '../records/places.repository.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import { presentInvitation, readInvitations } from './invitation-page.ts';
import {
  countInvitations,
  deleteInvitation,
  findInvitation,
  hasInvitation,
  type InvitationRow,
  insertInvitation,
  putBackInvitation,
  takeInvitation,
} from './invitations.repository.ts';
import {
  acceptance,
  accepted,
  createdInvitation,
  invitationPage,
  invitationParams,
  invitationQuery,
  newInvitation,
} from './invitations.schema.ts';
import { withRole } from './members.ts';
import { TENANT_REFUSALS, type TenantParts } from './requests.ts';
import type { Tenant } from './tenant-file.ts';
import { memberQuery, tenantParams } from './tenants.schema.ts';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 7;
const MOST_DAYS = 30;
/** The invitations of a client or organisation that can still be accepted. */
const MOST_OPEN = 100;

const KINDS = {
  clients: { one: 'client', withArticle: 'a client', operation: '' },
  organisations: { one: 'organisation', withArticle: 'an organisation', operation: 'ToOrganisation' },
} as const;

/** Invitations to clients, or to organisations. */
export function invitationsRoutes({ context }: TenantParts, kind: TenantRef['kind']): FastifyPluginAsyncZod {
  const { db, clock } = context;
  const { one, withArticle, operation } = KINDS[kind];
  const unknown = `unknown_${one}` as const;
  const tags = [kind];

  return async (app) => {
    app.post(
      `/${kind}/:id/invitations`,
      {
        config: {
          access: 'act',
          operators: true,
          repeatable: {
            async demand(request) {
              const { id } = request.params as z.output<typeof tenantParams>; // as the schemas have parsed them
              const { role } = request.body as z.output<typeof newInvitation>;
              demandMayGive(await demandRoleIn(context, { kind, id }, callerOf(request), 'act'), role);
            },
            secret: { member: 'token', of: (bytes) => secretOf('tgi_', bytes).value },
          },
        },
        schema: {
          operationId: `invite${operation}`,
          summary: `Make an invitation to ${withArticle}; its token is for one person, once`,
          tags,
          params: tenantParams,
          headers: creationHeaders,
          querystring: dryRunQuery,
          body: newInvitation,
          response: {
            200: planAnswer,
            201: createdInvitation,
            ...problems(
              'invalid_request',
              'forbidden',
              unknown,
              'limit_reached',
              'request_in_progress',
              'idempotency_key_reused',
            ),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const of = { kind, id: request.params.id };
        const { email = null, role, expiresAt } = request.body;
        const now = clock.date();
        const end = await tokenExpiry(db, caller.subject);
        const usual = now.getTime() + DEFAULT_DAYS * DAY_MS;
        const expires = new Date(expiresAt ?? Math.min(usual, end?.getTime() ?? usual));
        if (expires <= now || expires.getTime() > now.getTime() + MOST_DAYS * DAY_MS) {
          const message = `must be in the future, and within ${MOST_DAYS} days`;
          throw new ManagementProblem('invalid_request', { errors: [{ path: 'expiresAt', message }] });
        }
        await demandWithinToken(db, caller.subject, expires);
        const places: Places = {
          of: `invitations of ${of.id}`,
          most: MOST_OPEN,
          count: (trx, besides) => countInvitations(trx, of, now, besides),
          refusal: () =>
            new ManagementProblem('limit_reached', {
              detail: `there are ${MOST_OPEN} open invitations; revoke one, or wait until one is accepted or expires`,
            }),
        };
        const { value, hash } = secretOf('tgi_', request.secretBytes);
        const row = { id: request.newId, hash, email, role, created_by: caller.subject, expires_at: expires };
        const made = await withinPlaces(db, places, row.id, async (trx) =>
          isDryRun(request.query) ? null : await insertInvitation(trx, { ...row, of }),
        );
        if (made === null) return { plan: planOf(null, { email, role, expiresAt: expires.toISOString() }) };
        return reply.status(201).send({ ...presentInvitation(made), token: value });
      },
    );

    app.get(
      `/${kind}/:id/invitations`,
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: `listInvitations${operation}`,
          summary: `List the invitations to ${withArticle} that can still be accepted`,
          tags,
          params: tenantParams,
          querystring: memberQuery,
          response: { 200: invitationPage, ...problems('invalid_request', 'forbidden', unknown) },
        },
      },
      async (request) => {
        const of = { kind, id: request.params.id };
        await demandRoleIn(context, of, callerOf(request), 'act');
        const { limit, cursor } = request.query;
        return await readInvitations(context, { limit, cursor }, { manager: null, [one]: of.id });
      },
    );

    app.delete(
      `/${kind}/:id/invitations/:invitation`,
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: `revokeInvitation${operation}`,
          summary: `Revoke an invitation to ${withArticle}`,
          tags,
          params: invitationParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            204: z.null().meta({ description: 'it can’t be accepted any more' }),
            ...problems('invalid_request', 'forbidden', unknown, 'unknown_invitation'),
          },
        },
      },
      async (request, reply) => {
        const { id, invitation } = request.params;
        const of = { kind, id };
        await demandRoleIn(context, of, callerOf(request), 'act');
        const isPlanned = isDryRun(request.query);
        const isKnown = await (isPlanned ? hasInvitation : deleteInvitation)(db, of, invitation);
        if (!isKnown) throw new ManagementProblem('unknown_invitation');
        if (isPlanned) return { plan: planOf({ id: invitation }, null) };
        return reply.status(204).send(null);
      },
    );
  };
}

/** The invitations of both kinds: their list, and accepting one. */
export function allInvitationsRoutes({ context, changes }: TenantParts): FastifyPluginAsyncZod {
  const { db, clock } = context;

  return async (app) => {
    app.get(
      '/invitations',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listAllInvitations',
          summary: 'List the open invitations that the caller manages as owner or admin; operators see all',
          tags: ['clients'],
          querystring: invitationQuery,
          response: { 200: invitationPage, ...problems(...LIST_REFUSALS) },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { client, organisation, ...at } = request.query;
        await demandListed(context, request.query, caller);
        const manager = isOperator(context, caller) ? null : caller.subject;
        return await readInvitations(context, at, { manager, client, organisation });
      },
    );

    app.post(
      '/invitations/accept',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'acceptInvitation',
          summary: 'Take the role that an invitation gives',
          tags: ['clients'],
          querystring: dryRunQuery,
          body: acceptance,
          response: {
            200: z.union([accepted, planAnswer]),
            ...problems(...TENANT_REFUSALS, 'unknown_invitation'),
          },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { subject } = caller;
        if (caller.scopes !== undefined) {
          throw new ManagementProblem('forbidden', { detail: 'a service token can’t accept an invitation' });
        }
        const asked = { hash: hashOf(request.body.token), subject, now: clock.date() };
        if (isDryRun(request.query)) {
          const found = await findInvitation(db, asked);
          if (found === undefined) throw new ManagementProblem('unknown_invitation');
          await demandInviter(context, found);
          return await changes.plan(tenantOf(found), changeOf(request, found));
        }
        const row = await takeInvitation(db, asked);
        if (row === undefined) throw new ManagementProblem('unknown_invitation');
        try {
          await demandInviter(context, row);
          const changed = await changes.commit(tenantOf(row), changeOf(request, row));
          const given = changed.members.find((member) => member.subject === subject);
          return {
            client: row.client_id,
            organisation: row.organisation_id,
            role: given?.role ?? roleFrom(row.role),
          };
        } catch (error) {
          const code = error instanceof ManagementProblem ? error.code : null;
          // If the repository gave no answer, the commit may exist: then no other person may accept the invitation.
          const isUnclear = code === null || code === 'sites_repo_unavailable';
          if (code !== 'projection_failed') await putBackInvitation(db, row.id, isUnclear ? subject : null);
          throw error;
        }
      },
    );
  };
}

function changeOf(request: FastifyRequest, row: InvitationRow) {
  const caller = callerOf(request);
  const role = roleFrom(row.role);
  return {
    caller,
    requestId: request.id,
    subject: `Accept an invitation to be ${role}`,
    edit: (current: Tenant | null) => {
      if (current === null) throw new ManagementProblem('unknown_invitation');
      return withRole(current, caller.subject, role);
    },
  };
}

/** The inviter must still be allowed to invite. Otherwise a removed admin could invite themselves back. */
async function demandInviter(context: Context, row: InvitationRow): Promise<void> {
  const role = roleFrom(row.role);
  const inviter = await roleIn(context, tenantOf(row), { subject: row.created_by });
  const end = await tokenExpiry(context.db, row.created_by);
  const isExpired = end !== null && end <= context.clock.date();
  if (isExpired || inviter === null || !isAtLeast(inviter, role) || !isAtLeast(inviter, 'admin')) {
    throw new ManagementProblem('unknown_invitation');
  }
}
