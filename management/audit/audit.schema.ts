import { z } from 'zod';
import { pageSchema, sequenceQuery } from '../view/page.ts';

const auditEntry = z
  .object({
    id: z.string(),
    at: z.iso.datetime(),
    actor: z.string().meta({ description: 'the subject that sent the request' }),
    action: z.string().meta({ description: 'the operation’s id in this document' }),
    requestId: z.string(),
    containerId: z.uuid().nullable(),
    client: z.uuid().nullable(),
    clientId: z.uuid().nullable().meta({ description: 'the same as `client`', deprecated: true }),
    organisation: z.uuid().nullable().meta({
      description: 'only in rows about the organisation itself; rows about its clients have the client only',
    }),
    organisationId: z.uuid().nullable().meta({ description: 'the same as `organisation`', deprecated: true }),
    status: z
      .int()
      .nullable()
      .meta({ description: 'HTTP status of the answer; null: the process ended before it answered' }),
    code: z.string().nullable(),
    revision: z.string().nullable(),
    count: z.int().meta({
      description:
        'how many requests the row is about. What is refused to a caller without the role is summed by hour, caller, action and code; the rest of the row is from the first one',
    }),
  })
  .meta({ id: 'AuditEntry' });

export const auditHeaders = z.looseObject({
  accept: z.string().optional().meta({
    description: '`application/x-ndjson` or `text/csv`: all rows that match, without pages',
  }),
});
export const auditQuery = z.strictObject({
  actor: z.string().max(255).optional(),
  ...sequenceQuery,
  action: z.string().max(100).optional(),
  container: z.uuid().optional(),
  client: z.uuid().optional(),
  organisation: z.uuid().optional(),
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional().meta({ description: 'rows before this time' }),
  status: z.coerce.number().int().min(100).max(599).optional(),
});
export const auditPage = pageSchema(auditEntry);
