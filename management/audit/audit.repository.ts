import { sql } from 'kysely';
import { administeredClients } from '../access/administered.ts';
import type { Actor, Database } from '../db/database.ts';

/** Answers to callers who are no members: only operators see these rows. */
const FOREIGN: readonly string[] = [
  'unknown_client',
  'unknown_container',
  'unknown_operation',
  'unknown_token',
  'unknown_webhook',
];

export interface AuditFilter {
  /** Only rows of clients in which this caller has an acting role; `null`: all rows, for operators. */
  readonly caller: Actor | null;
  /** Their refused requests are shown to members; those of other callers without a role are not. */
  readonly operators: readonly string[];
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly container?: string | undefined;
  readonly client?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly status?: number | undefined;
}

/** Newest first; `cursor`: id of the last row of the previous page. */
export async function listAudit(
  db: Database,
  filter: AuditFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
) {
  const { caller, operators, actor, action, container, client, from, to, status } = filter;
  let query = db
    .selectFrom('audit_log')
    .select([
      'at',
      'actor',
      'action',
      'request_id',
      'container_id',
      'client_id',
      'status',
      'code',
      'revision',
    ])
    .select(sql<string>`seq::text`.as('id'))
    .orderBy('audit_log.seq', 'desc')
    .limit(limit);
  if (caller !== null) {
    query = query
      .where('client_id', 'in', administeredClients(db, caller))
      .where((where) => where.or([where('code', 'is', null), where('code', 'not in', FOREIGN)]))
      // A request may be refused before the caller's role is known, and a stranger may send any number of them.
      .where(({ or, eb, exists, selectFrom, ref }) =>
        or([
          eb('status', '<', 400),
          ...(operators.length === 0 ? [] : [eb('actor', 'in', operators)]),
          exists(
            selectFrom('client_memberships as own')
              .select('own.subject')
              .where('own.client_id', '=', ref('audit_log.client_id'))
              .where('own.subject', '=', ref('audit_log.actor')),
          ),
          exists(
            selectFrom('organisation_memberships as own')
              .innerJoin('clients', 'clients.organisation_id', 'own.organisation_id')
              .select('own.subject')
              .where('clients.id', '=', ref('audit_log.client_id'))
              .where('own.subject', '=', ref('audit_log.actor')),
          ),
        ]),
      );
  }
  if (actor !== undefined) query = query.where('actor', '=', actor);
  if (action !== undefined) query = query.where('action', '=', action);
  if (container !== undefined) query = query.where('container_id', '=', container);
  if (client !== undefined) query = query.where('client_id', '=', client);
  if (from !== undefined) query = query.where('at', '>=', new Date(from));
  if (to !== undefined) query = query.where('at', '<', new Date(to));
  if (status !== undefined) query = query.where('status', '=', status);
  if (cursor !== undefined) query = query.where('audit_log.seq', '<', cursor);
  return (await query.execute()).map(({ at, request_id, container_id, client_id, ...row }) => ({
    ...row,
    at: at.toISOString(),
    requestId: request_id,
    containerId: container_id,
    clientId: client_id,
  }));
}

export type AuditEntry = Awaited<ReturnType<typeof listAudit>>[number];
