import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandSufficient } from '../access/roles.ts';
import { secretOf } from '../access/secret-token.ts';
import {
  demandListed,
  demandMayGive,
  demandOpen,
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
import { type Places, withinPlaces } from '../records/places.repository.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import {
  countTokens,
  findToken,
  insertToken,
  listTokens,
  revokeToken,
  type TokenRow,
} from './tokens.repository.ts';
import {
  createdToken,
  newServiceToken,
  type serviceToken,
  tokenPage,
  tokenParams,
  tokenQuery,
} from './tokens.schema.ts';

type NewServiceToken = z.output<typeof newServiceToken>;
const DAY_MS = 86_400_000;
/** A token without a given expiry expires after this many days. */
const DEFAULT_DAYS = 90;

/** Service tokens of clients and organisations. */
export function tokensRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, settings, clock } = context;
  const tags = ['tokens'];

  return async (app) => {
    app.post(
      '/tokens',
      {
        config: {
          access: 'act',
          operators: true,
          repeatable: {
            async demand(request) {
              const { client, organisation, scopes } = request.body as NewServiceToken; // as the schema has parsed it
              const role = await demandRoleIn(
                context,
                ofRequest({ client, organisation }),
                callerOf(request),
                'act',
              );
              demandMayGive(role, scopes[0] ?? 'viewer');
            },
            secret: { member: 'value', of: (bytes) => secretOf('tgy_', bytes).value },
          },
        },
        schema: {
          operationId: 'createToken',
          summary: 'Make a service token of a client or organisation, with at most the caller’s own role',
          tags,
          headers: creationHeaders,
          querystring: dryRunQuery,
          body: newServiceToken,
          response: {
            200: planAnswer,
            201: createdToken,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_client',
              'unknown_organisation',
              'limit_reached',
              'request_in_progress',
              'idempotency_key_reused',
            ),
          },
        },
      },
      async (request, reply) => {
        const { name, client, organisation, scopes, expiresAt } = request.body;
        const caller = callerOf(request);
        const of = ofRequest({ client, organisation });
        const role = scopes[0] ?? 'viewer';
        await demandOpen(db, of);
        const now = clock.date();
        const end = await tokenExpiry(db, caller.subject);
        const usual = now.getTime() + DEFAULT_DAYS * DAY_MS;
        const expires_at =
          expiresAt === null ? null : new Date(expiresAt ?? Math.min(usual, end?.getTime() ?? usual));
        if (expires_at !== null && expires_at <= now) {
          const message = 'must be in the future';
          throw new ManagementProblem('invalid_request', { errors: [{ path: 'expiresAt', message }] });
        }
        await demandWithinToken(db, caller.subject, expires_at);
        const id = request.newId;
        const most = settings.quotas.tokens;
        const places: Places = {
          of: `tokens of ${of.id}`,
          most,
          count: (trx, besides) => countTokens(trx, of, besides),
          refusal: () => new ManagementProblem('limit_reached', { detail: `there are ${most} tokens` }),
        };
        const { value, hash } = secretOf('tgy_', request.secretBytes);
        const row = { id, name, role, created_by: caller.subject, expires_at, hash, of };
        const made = await withinPlaces(db, places, id, async (trx) =>
          isDryRun(request.query) ? null : await insertToken(trx, row),
        );
        if (made === null) {
          const after = {
            name,
            ...(client === undefined ? { organisation } : { client }),
            scopes,
            expiresAt: expires_at?.toISOString() ?? null,
          };
          return { plan: planOf(null, after) };
        }
        return reply.status(201).send({ ...present(made), value });
      },
    );

    app.get(
      '/tokens',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listTokens',
          summary: 'List the service tokens that the caller manages as owner or admin; operators see all',
          tags,
          querystring: tokenQuery,
          response: { 200: tokenPage, ...problems(...LIST_REFUSALS) },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { limit, cursor, client, organisation } = request.query;
        await demandListed(context, request.query, caller);
        const rows = await listTokens(db, {
          manager: isOperator(context, caller) ? null : caller.subject,
          client,
          organisation,
          after: keyFrom(cursor, z.tuple([z.iso.datetime(), z.uuid()])),
          limit: limit + 1,
        });
        const { items, next } = listPage(rows, limit, ({ created_at, id }) => [created_at.toISOString(), id]);
        return { items: items.map(present), next };
      },
    );

    app.delete(
      '/tokens/:id',
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: 'revokeToken',
          summary:
            'Revoke a service token and what was made with it; tokens are refused at once, in open streams too',
          tags,
          params: tokenParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            204: z.null().meta({ description: 'the token is not accepted any more' }),
            ...problems('invalid_request', 'forbidden', 'unknown_token'),
          },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const token = await findToken(db, { id });
        if (token === undefined) throw new ManagementProblem('unknown_token');
        const of = tenantOf(token);
        const role = await roleIn(context, of, callerOf(request));
        if (role === null) throw new ManagementProblem('unknown_token');
        demandSufficient(role, 'act');
        if (isDryRun(request.query)) return { plan: planOf(present(token), null) };
        await revokeToken(db, token, settings.superAdmins);
        return reply.status(204).send(null);
      },
    );
  };
}

function ofRequest({ client, organisation }: Pick<NewServiceToken, 'client' | 'organisation'>): TenantRef {
  return tenantOf({ client_id: client ?? null, organisation_id: organisation ?? null });
}

function present(row: TokenRow): z.output<typeof serviceToken> {
  const { id, name, client_id, organisation_id, role, created_by } = row;
  return {
    id,
    name,
    client: client_id,
    organisation: organisation_id,
    scopes: [role],
    createdBy: created_by,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
  };
}
