import { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { demandRole } from '../access/roles.ts';
import { demandRoleIn, isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { exportTexts, jsonOr } from '../http/texts.ts';
import { paged } from '../view/page.ts';
import { type AuditEntry, listAudit } from './audit.repository.ts';
import { auditHeaders, auditPage, auditQuery } from './audit.schema.ts';
import { EXPORTS, exported } from './export.ts';

const CLIENT = '5e0c1a3e-7f64-4a37-9c7c-0d6f1f2b3c4d';
const ROW: AuditEntry = {
  id: '97',
  at: '2026-11-23T10:00:00.000Z',
  actor: 'auth0|ada',
  action: 'changeContainer',
  requestId: '0b1f7f5e-6f0e-4f0c-9a52-3a3d0c8f2d11',
  containerId: '3f1f2f0e-54a5-4d6b-8f9e-0a1b2c3d4e5f',
  client: CLIENT,
  clientId: CLIENT,
  organisation: null,
  organisationId: null,
  status: 200,
  code: null,
  revision: '490cd4e1f0b2a3948576a1b2c3d4e5f60718293a',
  count: 1,
};
const { ndjson, csv } = EXPORTS;
const TEXTS = exportTexts('all rows that match', {
  ndjson: ndjson.line(ROW),
  csv: `${csv.head}${csv.line(ROW)}`,
});

/** The audit log, for owners and admins of the clients and organisations that its rows name, and whole for operators. */
export function auditRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, settings } = context;
  return async (app) => {
    app.get(
      '/audit',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listAudit',
          summary: 'Read or export the audit log, the newest row first',
          description:
            'Owners and admins read the rows of their clients and organisations, operators all rows.',
          tags: ['audit'],
          headers: auditHeaders,
          querystring: auditQuery,
          response: {
            200: jsonOr(auditPage, TEXTS),
            ...problems('invalid_request', 'forbidden', 'unknown_client', 'unknown_organisation'),
          },
        },
      },
      async (request, reply) => {
        const caller = callerOf(request);
        const readsAll = isOperator({ settings }, caller);
        const { limit, cursor, ...filter } = request.query;
        if (filter.client !== undefined && !readsAll) {
          await demandRole(db, filter.client, caller.subject, 'act');
        }
        if (filter.organisation !== undefined) {
          await demandRoleIn(context, { kind: 'organisations', id: filter.organisation }, caller, 'act');
        }
        const { accept } = request.headers;
        const formats = Object.keys(EXPORTS) as (keyof typeof EXPORTS)[]; // Object.keys drops the key type
        const format = formats.find((one) => accept?.includes(EXPORTS[one].type));
        const readable = {
          ...filter,
          caller: readsAll ? null : caller,
          operators: settings.superAdmins,
        };
        if (format !== undefined) {
          const text = Readable.from(exported(context, readable, format));
          reply.header('content-disposition', `attachment; filename="audit.${format}"`);
          return reply.type(`${EXPORTS[format].type}; charset=utf-8`).send(text as never); // the schema doesn't serialise a stream
        }
        const rows = await listAudit(db, readable, { limit: limit + 1, cursor });
        return paged(rows, limit, ({ id }) => id);
      },
    );
  };
}
