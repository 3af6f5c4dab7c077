import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { newSecretBytes, secretOf } from '../access/secret-token.ts';
import { demandRoleIn } from '../access/tenants.ts';
import { demandWithinToken, tokenExpiry } from '../access/token-expiry.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { type Places, withinPlaces } from '../records/places.repository.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import type { Handovers } from './handovers.ts';
import {
  containersOf,
  countLinks,
  findLink,
  insertLink,
  type LinkRow,
  listLinks,
  revokeLink,
} from './links.repository.ts';
import { createdLink, linkPage, linkParams, linkQuery, newLink } from './links.schema.ts';
import { isWithin } from './records.ts';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const MOST_DAYS = 90;
const IN_DOMAIN =
  'must be an address in a domain of the client’s containers; send others the link, which needs no login';
/** The most links of a client, as `countLinks` counts them. */
const MOST_OPEN = 100;

/** Links by which someone without a login sees which DNS records a client must set. */
export function handoverLinksRoutes(context: Context, handovers: Handovers): FastifyPluginAsyncZod {
  const { db, clock, settings } = context;
  const tags = ['domains'];
  const params = z.strictObject({ id: givenId });
  const refusals = ['invalid_request', 'forbidden', 'unknown_client'] as const;

  return async (app) => {
    app.post(
      '/clients/:id/handover-links',
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: 'createHandoverLink',
          summary: 'Make a link to the DNS records that a client has to set, for readers without a login',
          tags,
          params,
          querystring: dryRunQuery,
          body: newLink,
          response: {
            200: planAnswer,
            201: createdLink,
            ...problems(...refusals, 'unknown_container', 'limit_reached'),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const client_id = request.params.id;
        const { container = null, recipients, expiresAt } = request.body;
        await demandRoleIn(context, { kind: 'clients', id: client_id }, caller, 'act');
        const now = clock.date();
        const end = await tokenExpiry(db, caller.subject);
        const usual = now.getTime() + DEFAULT_DAYS * DAY_MS;
        const expires_at = new Date(expiresAt ?? Math.min(usual, end?.getTime() ?? usual));
        if (expires_at <= now || expires_at.getTime() > now.getTime() + MOST_DAYS * DAY_MS) {
          const message = `must be in the future, and within ${MOST_DAYS} days`;
          throw new ManagementProblem('invalid_request', { errors: [{ path: 'expiresAt', message }] });
        }
        await demandWithinToken(db, caller.subject, expires_at);
        if (container !== null) {
          const found = await containersOf(db, { client_id, container_id: container }, 1);
          if (found.length === 0) throw new ManagementProblem('unknown_container');
        }
        const zones = await handovers.zones({ client_id, container_id: container });
        const foreign = recipients.flatMap((address, index) =>
          isWithin(address, zones) ? [] : [{ path: `recipients.${index}`, message: IN_DOMAIN }],
        );
        if (foreign.length > 0) throw new ManagementProblem('invalid_request', { errors: foreign });
        const places: Places = {
          of: `handover links of ${client_id}`,
          most: MOST_OPEN,
          count: (trx) => countLinks(trx, client_id, now),
          refusal: () =>
            new ManagementProblem('limit_reached', {
              detail: `there are ${MOST_OPEN} links, counting ended ones that were made within the last day; revoke one made before that, or wait`,
            }),
        };
        const { value, hash } = secretOf('tgh_', newSecretBytes());
        const link = {
          ...{ id: randomUUID(), hash, client_id, container_id: container, recipients },
          ...{ created_by: caller.subject, created_at: now, expires_at },
        };
        const row = await withinPlaces(db, places, link.id, async (trx) =>
          isDryRun(request.query) ? null : await insertLink(trx, link),
        );
        if (row === null) {
          return { plan: planOf(null, { container, recipients, expiresAt: expires_at.toISOString() }) };
        }
        const url = `${settings.publicUrl ?? ''}/handover/${value}`;
        return reply.status(201).send({ ...present(row), secret: value, url });
      },
    );

    app.get(
      '/clients/:id/handover-links',
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: 'listHandoverLinks',
          summary: 'List the unexpired links to the DNS records of a client',
          tags,
          params,
          querystring: linkQuery,
          response: { 200: linkPage, ...problems(...refusals) },
        },
      },
      async (request) => {
        const { id } = request.params;
        await demandRoleIn(context, { kind: 'clients', id }, callerOf(request), 'act');
        const { limit, cursor } = request.query;
        const [after] = keyFrom(cursor, z.tuple([z.uuid()])) ?? [];
        const rows = await listLinks(db, id, { after, limit: limit + 1, now: clock.date() });
        const { items, next } = listPage(rows, limit, ({ id: last }) => [last]);
        return { items: items.map(present), next, sendsMail: settings.mail !== null };
      },
    );

    app.delete(
      '/clients/:id/handover-links/:link',
      {
        config: { access: 'act', operators: true },
        schema: {
          operationId: 'revokeHandoverLink',
          summary: 'Revoke a link to the DNS records of a client',
          tags,
          params: linkParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            204: z.null().meta({ description: 'the page is gone, and no mail is sent any more' }),
            ...problems(...refusals, 'unknown_handover_link'),
          },
        },
      },
      async (request, reply) => {
        const { id, link } = request.params;
        await demandRoleIn(context, { kind: 'clients', id }, callerOf(request), 'act');
        const now = clock.date();
        const known = await findLink(db, { client: id, id: link, now });
        if (known === undefined) throw new ManagementProblem('unknown_handover_link');
        if (isDryRun(request.query)) return { plan: planOf({ id: link }, null) };
        await revokeLink(db, link, now);
        return reply.status(204).send(null);
      },
    );
  };
}

function present(row: LinkRow) {
  return {
    id: row.id,
    container: row.container_id,
    recipients: row.recipients,
    createdBy: row.created_by,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    completeAt: row.complete_at?.toISOString() ?? null,
    mail: { state: row.mail, attempts: row.mail_attempts, error: row.mail_error },
  };
}
