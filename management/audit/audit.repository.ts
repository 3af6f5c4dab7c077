import { type Expression, sql } from 'kysely';
import { administeredClients, administeredOrganisations } from '../access/administered.ts';
import type { Actor, Database } from '../db/database.ts';

/** Codes of answers to callers who are no members: only operators see these rows. */
const FOREIGN: readonly string[] = [
  'unknown_client',
  'unknown_organisation',
  'unknown_container',
  'unknown_operation',
  'unknown_token',
  'unknown_webhook',
];

export interface AuditFilter {
  /** Only rows of clients and organisations in which this caller may `act`; `null`: all rows, for operators. */
  readonly caller: Actor | null;
  /**
   * Subjects of operators. Members see the refused requests of operators, but not those of other callers without a
   * role.
   */
  readonly operators: readonly string[];
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly container?: string | undefined;
  readonly client?: string | undefined;
  readonly organisation?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly status?: number | undefined;
}

/** Whether the actor of a row has a role in its client. */
const MEMBER_OF_CLIENT = sql`
  select from client_memberships as own
  where own.client_id = audit_log.client_id and own.subject = audit_log.actor
  union all
  select from organisation_memberships as own join clients on clients.organisation_id = own.organisation_id
  where clients.id = audit_log.client_id and own.subject = audit_log.actor`;
const MEMBER_OF_ORGANISATION = sql`
  select from organisation_memberships as own
  where own.organisation_id = audit_log.organisation_id and own.subject = audit_log.actor`;

/** Newest first; `cursor`: id of the last row of the previous page. */
export async function listAudit(
  db: Database,
  filter: AuditFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
) {
  const { caller, operators, actor, action, container, client, organisation, from, to, status } = filter;
  let query = db
    .selectFrom('audit_log')
    .select([
      'at',
      'actor',
      'action',
      'request_id',
      'container_id',
      'client_id',
      'organisation_id',
      'status',
      'code',
      'revision',
      'count',
    ])
    .select(sql<string>`seq::text`.as('id'))
    .orderBy('audit_log.seq', 'desc')
    .limit(limit);
  if (caller !== null) {
    // A request may be refused before the caller's role is known, and a stranger may send any number of them.
    const isKnown = (own: Expression<unknown>) => sql<boolean>`(status < 400
      or actor = any (${operators}::text[])
      or exists (${own}))`;
    query = query
      .where((where) => where.or([where('code', 'is', null), where('code', 'not in', FOREIGN)]))
      .where(({ or, and, eb }) =>
        or([
          and([eb('client_id', 'in', administeredClients(db, caller)), isKnown(MEMBER_OF_CLIENT)]),
          and([
            eb('organisation_id', 'in', administeredOrganisations(db, caller)),
            isKnown(MEMBER_OF_ORGANISATION),
          ]),
        ]),
      );
  }
  if (actor !== undefined) query = query.where('actor', '=', actor);
  if (action !== undefined) query = query.where('action', '=', action);
  if (container !== undefined) query = query.where('container_id', '=', container);
  if (client !== undefined) query = query.where('client_id', '=', client);
  if (organisation !== undefined) query = query.where('organisation_id', '=', organisation);
  if (from !== undefined) query = query.where('at', '>=', new Date(from));
  if (to !== undefined) query = query.where('at', '<', new Date(to));
  if (status !== undefined) query = query.where('status', '=', status);
  if (cursor !== undefined) query = query.where('audit_log.seq', '<', cursor);
  return (await query.execute()).map(
    ({ at, request_id, container_id, client_id, organisation_id, ...row }) => ({
      ...row,
      at: at.toISOString(),
      requestId: request_id,
      containerId: container_id,
      client: client_id,
      clientId: client_id,
      organisation: organisation_id,
      organisationId: organisation_id,
    }),
  );
}

export type AuditEntry = Awaited<ReturnType<typeof listAudit>>[number];
