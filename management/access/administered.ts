import type { Actor, Database } from '../db/database.ts';
import { isAtLeast, ROLES } from '../lifecycle/roles.ts';
import { grantsOf } from '../records/memberships.repository.ts';
import { WEAKEST } from './roles.ts';

const ACTING = ROLES.filter((role) => isAtLeast(role, WEAKEST.act));

type Subject = Pick<Actor, 'subject'>;

/** A subquery of the ids of the clients in which the caller may `act`, to use as `where(column, 'in', …)`. */
export function administeredClients(db: Database, { subject }: Subject) {
  return db
    .selectFrom(grantsOf(db, subject).as('granted'))
    .select('granted.client_id')
    .where('granted.role', 'in', ACTING);
}

/** Like `administeredClients`, the ids of the organisations. */
export function administeredOrganisations(db: Database, { subject }: Subject) {
  return db
    .selectFrom('organisation_memberships as own')
    .select('own.organisation_id')
    .where('own.subject', '=', subject)
    .where('own.role', 'in', ACTING);
}
