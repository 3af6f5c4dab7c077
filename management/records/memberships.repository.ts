import type { SelectQueryBuilder } from 'kysely';
import type { Actor, Database, Tables } from '../db/database.ts';
import { type Role, strongestRole } from '../lifecycle/roles.ts';

type Grants = SelectQueryBuilder<Tables, keyof Tables, { client_id: string; role: string }>;
type ClientIds = SelectQueryBuilder<Tables, keyof Tables, { client_id: string }>;

/**
 * A subquery of the roles that a subject has in clients: as their member, and as a member of their organisation. A
 * client occurs twice if the subject has a role in both.
 */
export function grantsOf(db: Database, subject: string): Grants {
  return db
    .selectFrom('client_memberships')
    .select(['client_memberships.client_id', 'client_memberships.role'])
    .where('client_memberships.subject', '=', subject)
    .unionAll(
      db
        .selectFrom('organisation_memberships')
        .innerJoin('clients', 'clients.organisation_id', 'organisation_memberships.organisation_id')
        .select(['clients.id as client_id', 'organisation_memberships.role'])
        .where('organisation_memberships.subject', '=', subject),
    );
}

/** A subquery of the ids of the clients that the caller may read, to use as `where(column, 'in', …)`. */
export function visibleClients(db: Database, { subject }: Pick<Actor, 'subject'>): ClientIds {
  return db
    .selectFrom('client_memberships')
    .select('client_memberships.client_id')
    .where('client_memberships.subject', '=', subject)
    .union(
      db
        .selectFrom('organisation_memberships')
        .innerJoin('clients', 'clients.organisation_id', 'organisation_memberships.organisation_id')
        .select('clients.id as client_id')
        .where('organisation_memberships.subject', '=', subject),
    );
}

/** The strongest role that a subject has in a client; `null`: none. */
export async function roleInClient(db: Database, client: string, subject: string): Promise<Role | null> {
  const rows = await db
    .selectFrom(grantsOf(db, subject).as('granted'))
    .select('granted.role')
    .where('granted.client_id', '=', client)
    .execute();
  return strongestRole(rows.map(({ role }) => role));
}

/** The role that a subject has in an organisation; `null`: none. */
export async function roleInOrganisation(
  db: Database,
  organisation: string,
  subject: string,
): Promise<Role | null> {
  const rows = await db
    .selectFrom('organisation_memberships')
    .select('role')
    .where('organisation_id', '=', organisation)
    .where('subject', '=', subject)
    .execute();
  return strongestRole(rows.map(({ role }) => role));
}

/** The strongest role that a subject has in any organisation, or in any of these and of the clients; `null`: none. */
export async function strongestRoleInAny(
  db: Database,
  kinds: 'organisations' | 'clients and organisations',
  subject: string,
): Promise<Role | null> {
  const inOrganisations = db
    .selectFrom('organisation_memberships')
    .select('role')
    .where('subject', '=', subject);
  const inClients = db.selectFrom('client_memberships').select('role').where('subject', '=', subject);
  const rows = await (kinds === 'organisations'
    ? inOrganisations
    : inOrganisations.union(inClients)
  ).execute();
  return strongestRole(rows.map(({ role }) => role));
}
