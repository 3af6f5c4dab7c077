import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { type Places, withinPlaces } from '../records/places.repository.ts';
import { paged } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import {
  countPending,
  type DeliveryRow,
  findDelivery,
  listDeliveries,
  queueAgain,
  queueTest,
} from './deliveries.repository.ts';
import { demandWebhook } from './demand.ts';
import {
  deliveriesQuery,
  deliveryPage,
  deliveryParams,
  deliveryView,
  typeOf,
  webhookParams,
} from './webhooks.schema.ts';

/** While this many deliveries of a webhook wait, callers can't add another one. Events are still queued. */
const MOST_PENDING = 1_000;

function presentDelivery(row: DeliveryRow): z.output<typeof deliveryView> {
  const { id, kind, queue, status, attempts, due_at, answer, error, queued_at, attempted_at } = row;
  return {
    id,
    event: typeOf(kind),
    containerId: kind === 'test' ? null : queue,
    status,
    attempts,
    nextAt: due_at?.toISOString() ?? null,
    answer,
    error,
    queuedAt: queued_at.toISOString(),
    attemptedAt: attempted_at?.toISOString() ?? null,
  };
}

/** What was sent to a webhook, and what is to be sent. `onQueued` is called after a delivery was queued. */
export function deliveriesRoutes({ db }: Context, onQueued: () => void): FastifyPluginAsyncZod {
  const tags = ['webhooks'];

  async function found(webhook: string, id: string): Promise<DeliveryRow> {
    const delivery = await findDelivery(db, webhook, id);
    if (delivery === undefined) throw new ManagementProblem('unknown_delivery');
    return delivery;
  }

  const places = (webhook: string): Places => ({
    of: `deliveries of ${webhook}`,
    most: MOST_PENDING,
    count: (trx) => countPending(trx, webhook, MOST_PENDING),
    refusal: () => {
      const detail = `${MOST_PENDING} deliveries of the webhook wait; try again when one of them is delivered or dead`;
      return new ManagementProblem('limit_reached', { detail });
    },
  });

  return async (app) => {
    app.get(
      '/webhooks/:id/deliveries',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'listDeliveries',
          summary: 'List the deliveries of a webhook, the newest first',
          tags,
          params: webhookParams,
          querystring: deliveriesQuery,
          response: { 200: deliveryPage, ...problems('invalid_request', 'forbidden', 'unknown_webhook') },
        },
      },
      async (request) => {
        const { limit, cursor, status } = request.query;
        const { id } = await demandWebhook(db, request.params.id, callerOf(request));
        const rows = await listDeliveries(db, id, { limit: limit + 1, cursor, status });
        const { items, next } = paged(rows, limit, ({ position }) => position);
        return { items: items.map(presentDelivery), next };
      },
    );

    app.post(
      '/webhooks/:id/test',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'testWebhook',
          summary: 'Send a test message to a webhook',
          tags,
          params: webhookParams,
          querystring: dryRunQuery,
          response: {
            200: planAnswer,
            202: deliveryView,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_webhook',
              'webhook_disabled',
              'limit_reached',
            ),
          },
        },
      },
      async (request, reply) => {
        const { id, enabled } = await demandWebhook(db, request.params.id, callerOf(request));
        if (!enabled) throw new ManagementProblem('webhook_disabled');
        const delivery = await withinPlaces(db, places(id), '', async (trx) =>
          isDryRun(request.query) ? null : await queueTest(trx, id),
        );
        if (delivery === null) return { plan: planOf(null, { event: typeOf('test') }) };
        onQueued();
        return reply.status(202).send(presentDelivery(await found(id, delivery)));
      },
    );

    app.post(
      '/webhooks/:id/deliveries/:delivery/replay',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'replayDelivery',
          summary: 'Send a delivery again, after the waiting deliveries of the same container',
          tags,
          params: deliveryParams,
          querystring: dryRunQuery,
          response: {
            202: deliveryView,
            200: planAnswer,
            ...problems(
              'invalid_request',
              'forbidden',
              'unknown_webhook',
              'unknown_delivery',
              'webhook_disabled',
              'limit_reached',
            ),
          },
        },
      },
      async (request, reply) => {
        const { id, enabled } = await demandWebhook(db, request.params.id, callerOf(request));
        const { status } = await found(id, request.params.delivery);
        if (!enabled) throw new ManagementProblem('webhook_disabled');
        const isPlanned = isDryRun(request.query);
        await withinPlaces(db, places(id), request.params.delivery, async (trx) => {
          if (!isPlanned) await queueAgain(trx, request.params.delivery);
        });
        if (isPlanned) return { plan: planOf({ status }, { status: 'pending' }) };
        onQueued();
        return reply.status(202).send(presentDelivery(await found(id, request.params.delivery)));
      },
    );
  };
}
