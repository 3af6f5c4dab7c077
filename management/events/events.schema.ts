import { z } from 'zod';
import { SITE_STATES } from '../../gitops/report/site-state.ts';
import { EVENT_KINDS, STATUSES } from '../lifecycle/status.ts';
import { statusReason } from '../view/container-view.ts';
import { pageSchema, sequenceQuery } from '../view/page.ts';

const eventView = z
  .object({
    id: z.string().meta({ description: 'ids grow in the order in which events became visible' }),
    containerId: z.uuid(),
    client: z.uuid(),
    clientId: z.uuid().meta({ description: 'the same as `client`', deprecated: true }),
    at: z.iso.datetime(),
    kind: z.enum(EVENT_KINDS),
    status: z.enum(STATUSES),
    state: z
      .enum(SITE_STATES)
      .nullable()
      .meta({ description: 'the new state, in an event of the kind `state`; else null' }),
    reason: statusReason.nullable(),
    detail: z.string().nullable(),
    actor: z.string().nullable(),
    requestId: z.string().nullable(),
    revision: z.string().nullable(),
  })
  .meta({ id: 'ContainerEvent' });

export const eventsHeaders = z.looseObject({
  accept: z.string().optional().meta({ description: '`text/event-stream`: follows the events' }),
  'last-event-id': z
    .string()
    .regex(/^\d{1,18}$/)
    .optional()
    .meta({ description: 'id of an event; a stream begins after it' }),
});

export const containerEventsQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(500).default(100),
  cursor: sequenceQuery.cursor,
});
export const containerEvents = z.object({
  events: z.array(eventView),
  next: z
    .string()
    .nullable()
    .meta({ description: 'pass it as `cursor` for the events before these; null: there are none' }),
});

export const feedQuery = z.strictObject({
  ...sequenceQuery,
  client: z.uuid().optional(),
  container: z.uuid().optional(),
  kind: z.enum(EVENT_KINDS).optional(),
  sort: z
    .enum(['-id', 'id'])
    .default('-id')
    .meta({ description: '`-id`: the newest first. `id`: the oldest first, to continue after `cursor`' }),
});
export const feedPage = pageSchema(eventView);
