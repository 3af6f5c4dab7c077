import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { examples } from '../http/examples.ts';
import { EVENT_KINDS, type EventKind } from '../lifecycle/status.ts';
import { pageSchema, sequenceQuery } from '../view/page.ts';

type EventType = `container.${EventKind}`;
const TYPES = EVENT_KINDS.map((kind): EventType => `container.${kind}`);
const eventType = z.enum(TYPES as [EventType, ...EventType[]]); // there is at least one kind

/** The event's kind in the database. */
export const kindOf = (type: EventType): EventKind => type.slice('container.'.length) as EventKind; // by its template type
export const typeOf = (kind: EventKind | 'test') =>
  kind === 'test' ? ('webhook.test' as const) : (`container.${kind}` as const);

const url = z
  .string()
  .max(2048)
  .refine((text) => URL.canParse(text) && !text.includes('\0'), 'must be a URL')
  .transform((text) => new URL(text).href)
  .meta({ description: 'a public https address; redirects aren’t followed' });
const events = z
  .array(eventType)
  .min(1)
  .refine((types) => new Set(types).size === types.length, 'names an event twice');

export const newWebhook = z
  .strictObject({
    client: z.uuid().optional(),
    organisation: z.uuid().optional(),
    clientId: z.uuid().optional().meta({ description: 'the same as `client`', deprecated: true }),
    organisationId: z.uuid().optional().meta({ description: 'the same as `organisation`', deprecated: true }),
    url,
    events: events.default([...TYPES]),
    enabled: z.boolean().default(true),
  })
  .refine(
    ({ client, organisation, clientId, organisationId }) =>
      [client, organisation, clientId, organisationId].filter((id) => id !== undefined).length === 1,
    'must name either a client or an organisation',
  )
  .transform(({ clientId, organisationId, client, organisation, ...rest }) => ({
    ...rest,
    client: client ?? clientId,
    organisation: organisation ?? organisationId,
  }))
  .meta(
    examples({
      'of a client': {
        client: '5e0c1a3e-7f64-4a37-9c7c-0d6f1f2b3c4d',
        url: 'https://hooks.acme.example/tagyard',
        events: ['container.status'],
      },
    }),
  );

export const webhookPatch = z
  .strictObject({ url: url.optional(), events: events.optional(), enabled: z.boolean().optional() })
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), 'names nothing to change')
  .meta(examples({ 'switched off': { enabled: false } }));

export const webhookView = z
  .object({
    id: z.uuid(),
    client: z.uuid().nullable(),
    organisation: z.uuid().nullable(),
    url: z.string(),
    events: z.array(eventType),
    enabled: z.boolean(),
    pausedUntil: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'after several failures in a row nothing is sent until then' }),
    notice: z
      .object({ at: z.iso.datetime(), text: z.string() })
      .nullable()
      .meta({ description: 'says that a delivery was given up, or why the webhook was switched off' }),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'Webhook' });

export const secretView = webhookView
  .extend({
    secret: z.string().meta({
      description: 'verifies the signatures (Standard Webhooks); it is shown only in this answer',
    }),
  })
  .meta({ id: 'WebhookWithSecret' });

export const deliveryView = z
  .object({
    id: z.uuid(),
    event: z.enum(['webhook.test', ...TYPES]),
    containerId: z.uuid().nullable(),
    status: z
      .enum(['pending', 'delivered', 'dead'])
      .meta({ description: 'dead: given up after three days, or because the receiver answered 410' }),
    attempts: z.int(),
    nextAt: z.iso.datetime().nullable().meta({
      description: 'when the container’s next delivery is due: this one, or an earlier one that it waits for',
    }),
    answer: z.int().nullable().meta({ description: 'HTTP status of the last attempt' }),
    error: z.string().nullable(),
    queuedAt: z.iso.datetime(),
    attemptedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'WebhookDelivery' });

export const deliveryPage = pageSchema(deliveryView);
export const webhookPage = pageSchema(webhookView);
export const webhookHeaders = z.looseObject({
  'if-match': z
    .string()
    .max(1024)
    .optional()
    .meta({ description: '`etag` of a GET: refused if the webhook has changed since' }),
});
export const webhookParams = z.strictObject({ id: givenId });
export const deliveryParams = z.strictObject({ id: givenId, delivery: z.uuid() });
export const webhooksQuery = z.strictObject({
  ...sequenceQuery,
  client: z.uuid().optional(),
  organisation: z.uuid().optional(),
});
export const deliveriesQuery = z.strictObject({
  ...sequenceQuery,
  status: z.enum(['pending', 'delivered', 'dead']).optional(),
});
