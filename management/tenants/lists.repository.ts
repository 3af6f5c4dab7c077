import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { type Role, strongestRole } from '../lifecycle/roles.ts';
import { grantsOf, visibleClients } from '../records/memberships.repository.ts';

/** `role`: the subject's own; `null`: an operator sees it without one. */
interface ListedOrganisation {
  readonly id: string;
  readonly name: string;
  readonly archivedAt: string | null;
  readonly role: Role | null;
}

interface ListedClient extends ListedOrganisation {
  readonly organisation: string | null;
}

interface Filter {
  readonly subject: string;
  /** `true`: lists also those in which the subject has no role. */
  readonly all: boolean;
  /** `true`: lists also archived ones. */
  readonly archived: boolean;
  readonly q?: string | undefined;
  /** Name and id of the last one of the previous page. */
  readonly after: readonly string[] | null;
  readonly limit: number;
}

interface ClientFilter extends Filter {
  readonly organisation?: string | undefined;
}

/** By name. */
export async function listClients(db: Database, filter: ClientFilter): Promise<ListedClient[]> {
  const { subject, all, organisation, archived, q, after, limit } = filter;
  let query = db
    .selectFrom('clients')
    .select(['id', 'name', 'organisation_id', 'archived_at'])
    .orderBy(sql`lower(name)`)
    .orderBy('id')
    .limit(limit);
  if (!all) query = query.where('id', 'in', visibleClients(db, { subject }));
  if (organisation !== undefined) query = query.where('organisation_id', '=', organisation);
  if (!archived) query = query.where('archived_at', 'is', null);
  if (q !== undefined) query = query.where(contains(q));
  if (after !== null) query = query.where(isAfter(after));
  const rows = await query.execute();
  const granted =
    rows.length === 0
      ? []
      : await db
          .selectFrom(grantsOf(db, subject).as('granted'))
          .selectAll()
          .where(
            'granted.client_id',
            'in',
            rows.map(({ id }) => id),
          )
          .execute();
  const roles = Map.groupBy(granted, ({ client_id }) => client_id);
  return rows.map(({ id, name, organisation_id, archived_at }) => ({
    id,
    name,
    organisation: organisation_id,
    archivedAt: archived_at?.toISOString() ?? null,
    role: strongestRole((roles.get(id) ?? []).map(({ role }) => role)),
  }));
}

/** By name. */
export async function listOrganisations(db: Database, filter: Filter): Promise<ListedOrganisation[]> {
  const { subject, all, archived, q, after, limit } = filter;
  let query = db
    .selectFrom('organisations')
    .leftJoin('organisation_memberships as own', (join) =>
      join.onRef('own.organisation_id', '=', 'organisations.id').on('own.subject', '=', subject),
    )
    .select(['id', 'name', 'archived_at', 'own.role'])
    .orderBy(sql`lower(name)`)
    .orderBy('id')
    .limit(limit);
  if (!all) query = query.where('own.role', 'is not', null);
  if (!archived) query = query.where('archived_at', 'is', null);
  if (q !== undefined) query = query.where(contains(q));
  if (after !== null) query = query.where(isAfter(after));
  const rows = await query.execute();
  return rows.map(({ id, name, archived_at, role }) => ({
    id,
    name,
    archivedAt: archived_at?.toISOString() ?? null,
    role: role === null ? null : strongestRole([role]),
  }));
}

/** Whether the name contains the text, without regard to case. */
const contains = (q: string) => sql<boolean>`strpos(lower(name), lower(${q})) > 0`;

const isAfter = ([name = '', id = '']: readonly string[]) =>
  sql<boolean>`(lower(name), id) > (lower(${name}), ${id}::uuid)`;
