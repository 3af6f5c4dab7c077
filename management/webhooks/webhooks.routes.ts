import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandOpen, tenantOf } from '../access/tenants.ts';
import { AddressError, refuseAddress } from '../clients/public-address.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { type Places, withinPlaces } from '../records/places.repository.ts';
import { paged } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import { demandOwner, demandWebhook } from './demand.ts';
import { demandWebhookTag, presentWebhook, webhookTag } from './present.ts';
import { addressRules } from './rules.ts';
import {
  changeWebhook,
  countWebhooks,
  deleteWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  rotateSecret,
  type WebhookRow,
  webhookSecret,
} from './webhooks.repository.ts';
import {
  kindOf,
  newWebhook,
  secretView,
  webhookHeaders,
  webhookPage,
  webhookParams,
  webhookPatch,
  webhooksQuery,
  webhookView,
} from './webhooks.schema.ts';

/** The most webhooks of one client or organisation. */
const MOST = 20;

/** Webhooks of clients and organisations, for those who may `act` there. */
export function webhooksRoutes({ db, settings }: Context): FastifyPluginAsyncZod {
  const tags = ['webhooks'];

  function demandAddress(url: string): void {
    try {
      refuseAddress(url, addressRules(settings));
    } catch (error) {
      if (!(error instanceof AddressError)) throw error;
      const errors = [{ path: 'url', message: error.message }];
      throw new ManagementProblem('address_refused', { detail: error.message, errors });
    }
  }

  return async (app) => {
    app.post(
      '/webhooks',
      {
        config: {
          access: 'act',
          repeatable: {
            // The body is as the schema has parsed it.
            demand: (request) =>
              demandOwner(db, request.body as z.output<typeof newWebhook>, callerOf(request)),
            secret: { member: 'secret', of: webhookSecret },
          },
        },
        schema: {
          operationId: 'createWebhook',
          summary: 'Create a webhook of a client or an organisation',
          description: 'Only this answer shows its secret.',
          tags,
          headers: creationHeaders,
          querystring: dryRunQuery,
          body: newWebhook,
          response: {
            200: planAnswer,
            201: secretView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_client',
              'unknown_organisation',
              'too_many_webhooks',
              'address_refused',
              'request_in_progress',
              'idempotency_key_reused',
            ),
          },
        },
      },
      async (request, reply) => {
        const { client, organisation, url, events, enabled } = request.body;
        await demandOpen(db, tenantOf({ client_id: client ?? null, organisation_id: organisation ?? null }));
        demandAddress(url);
        const column = client === undefined ? 'organisation_id' : 'client_id';
        const owner = client ?? organisation ?? '';
        const places: Places = {
          of: `webhooks of ${owner}`,
          most: MOST,
          count: (trx, besides) => countWebhooks(trx, column, owner, besides),
          refusal: () => new ManagementProblem('too_many_webhooks', { detail: `there are ${MOST} webhooks` }),
        };
        const wanted = {
          id: request.newId,
          client_id: client ?? null,
          organisation_id: organisation ?? null,
          url,
          events: JSON.stringify(events.map(kindOf)),
          enabled,
          secret: webhookSecret(request.secretBytes),
          changed_by: callerOf(request).subject,
        };
        const row = await withinPlaces(db, places, wanted.id, async (trx) =>
          isDryRun(request.query) ? null : await insertWebhook(trx, wanted),
        );
        if (row === null) return { plan: planOf(null, request.body) };
        return reply.status(201).send({ ...tagged(row, reply), secret: row.secret });
      },
    );

    app.get(
      '/webhooks',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listWebhooks',
          summary: 'List the webhooks that the caller administers, the newest first',
          tags,
          querystring: webhooksQuery,
          response: {
            200: webhookPage,
            ...problems('invalid_request', 'forbidden', 'unknown_client', 'unknown_organisation'),
          },
        },
      },
      async (request) => {
        const { limit, cursor, client, organisation } = request.query;
        const caller = callerOf(request);
        await demandOwner(db, { client, organisation }, caller);
        const rows = await listWebhooks(db, { caller, client, organisation }, { limit: limit + 1, cursor });
        const { items, next } = paged(rows, limit, ({ seq }) => seq);
        return { items: items.map(presentWebhook), next };
      },
    );

    app.get(
      '/webhooks/:id',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'getWebhook',
          summary: 'Read a webhook',
          tags,
          params: webhookParams,
          response: { 200: webhookView, ...problems('invalid_request', 'forbidden', 'unknown_webhook') },
        },
      },
      async (request, reply) => tagged(await demandWebhook(db, request.params.id, callerOf(request)), reply),
    );

    app.patch(
      '/webhooks/:id',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'changeWebhook',
          summary: 'Change the address or the events of a webhook, or switch it on or off',
          tags,
          params: webhookParams,
          headers: webhookHeaders,
          querystring: dryRunQuery,
          body: webhookPatch,
          response: {
            200: z.union([webhookView, planAnswer]),
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_webhook',
              'address_refused',
              'precondition_failed',
            ),
          },
        },
      },
      async (request, reply) => {
        const { url, events, enabled } = request.body;
        const { 'if-match': ifMatch } = request.headers;
        const row = await demandWebhook(db, request.params.id, callerOf(request));
        demandWebhookTag(ifMatch, row);
        if (url !== undefined) demandAddress(url);
        if (isDryRun(request.query)) {
          const before = presentWebhook(row);
          return { plan: planOf(before, { ...before, ...request.body }) };
        }
        const values = {
          ...(url === undefined ? {} : { url }),
          ...(events === undefined ? {} : { events: JSON.stringify(events.map(kindOf)) }),
          ...(enabled === undefined ? {} : { enabled }),
          changed_by: callerOf(request).subject,
        };
        const changed = await db.transaction().execute(async (trx) => {
          const now = await lockWebhook(trx, row.id);
          if (now === undefined) throw new ManagementProblem('unknown_webhook');
          demandWebhookTag(ifMatch, now);
          return await changeWebhook(trx, row.id, values);
        });
        return tagged(changed, reply);
      },
    );

    app.post(
      '/webhooks/:id/secret',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'rotateWebhookSecret',
          summary: 'Replace the secret of a webhook',
          description: 'For a day, messages are also signed with the previous secret.',
          tags,
          params: webhookParams,
          querystring: dryRunQuery,
          response: {
            200: z.union([secretView, planAnswer]),
            ...problems('invalid_request', 'forbidden', 'unknown_webhook'),
          },
        },
      },
      async (request, reply) => {
        const { id } = await demandWebhook(db, request.params.id, callerOf(request));
        if (isDryRun(request.query)) return { plan: planOf({ secret: 'old' }, { secret: 'new' }) };
        const row = await rotateSecret(db, id, callerOf(request).subject);
        return { ...tagged(row, reply), secret: row.secret };
      },
    );

    app.delete(
      '/webhooks/:id',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'deleteWebhook',
          summary: 'Delete a webhook and its deliveries',
          tags,
          params: webhookParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            204: z.null().meta({ description: 'nothing is sent to it any more' }),
            ...problems('invalid_request', 'forbidden', 'unknown_webhook'),
          },
        },
      },
      async (request, reply) => {
        const row = await demandWebhook(db, request.params.id, callerOf(request));
        if (isDryRun(request.query)) return { plan: planOf(presentWebhook(row), null) };
        await deleteWebhook(db, row.id);
        return reply.status(204).send(null);
      },
    );
  };
}

/** The answer, with its tag as a header. */
function tagged(row: WebhookRow, reply: FastifyReply): ReturnType<typeof presentWebhook> {
  reply.header('etag', webhookTag(row));
  return presentWebhook(row);
}
