import { sql } from 'kysely';
import { counted } from '../../gitops/base/text.ts';
import { demandOpen, type TenantRef } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { Tenant } from './tenant-file.ts';

/**
 * Throws `limit_reached` if a change of a client gives its organisation or a new member more clients than are allowed.
 * Archived clients don't count. Requests at the same moment may together exceed the limit.
 */
export async function demandClientLimits(
  { db, settings }: Pick<Context, 'db' | 'settings'>,
  { kind, id }: TenantRef,
  before: Tenant | null,
  after: Tenant,
): Promise<void> {
  if (kind !== 'clients' || after.archivedAt !== null) return;
  const isNew = before === null || before.archivedAt !== null;
  const { clientsPerOrganisation, clientsPerPerson } = settings.quotas;
  const { organisation } = after;
  if (organisation !== null && (isNew || before.organisation !== organisation)) {
    if ((await countClients(db, organisation, id)) >= clientsPerOrganisation) {
      throw new ManagementProblem('limit_reached', {
        detail: `an organisation has at most ${counted(clientsPerOrganisation, 'client')}; archive one, or ask the operator to raise CLIENTS_PER_ORGANISATION`,
      });
    }
  }
  const known = new Set(isNew ? [] : before.members.map(({ subject }) => subject));
  const added = after.members.map(({ subject }) => subject).filter((subject) => !known.has(subject));
  const full = added.length === 0 ? null : await fullSubject(db, added, { most: clientsPerPerson, but: id });
  if (full === null) return;
  throw new ManagementProblem('limit_reached', {
    detail: `${full} is a member of ${counted(clientsPerPerson, 'client')}, the most for one person; give the role in an organisation, where it holds for all its clients, or ask the operator to raise CLIENTS_PER_PERSON`,
  });
}

/** How many clients other than `but` the organisation has. */
async function countClients(db: Database, organisation: string, but: string): Promise<number> {
  const { count } = await db
    .selectFrom('clients')
    .select(sql<number>`count(*)::integer`.as('count'))
    .where('organisation_id', '=', organisation)
    .where('archived_at', 'is', null)
    .where('id', '<>', but)
    .executeTakeFirstOrThrow();
  return count;
}

/** The first of the subjects that is a member of `most` other clients; `null`: none is. */
async function fullSubject(
  db: Database,
  subjects: readonly string[],
  { most, but }: { readonly most: number; readonly but: string },
): Promise<string | null> {
  const found = await db
    .selectFrom('client_memberships as own')
    .innerJoin('clients', 'clients.id', 'own.client_id')
    .select('own.subject')
    .where('own.subject', 'in', subjects)
    .where('clients.archived_at', 'is', null)
    .where('clients.id', '<>', but)
    .groupBy('own.subject')
    .having(sql<boolean>`count(*) >= ${most}`)
    .orderBy('own.subject')
    .limit(1)
    .executeTakeFirst();
  return found?.subject ?? null;
}

/**
 * Throws if a change archives a client that has containers, or an organisation that has clients, or if it brings a client
 * into an archived organisation. It may miss a request that runs at the same moment.
 */
export async function demandArchivable(
  db: Database,
  { kind, id }: TenantRef,
  before: Tenant | null,
  after: Tenant,
): Promise<void> {
  const isArchived = after.archivedAt !== null;
  const wasArchived = before !== null && before.archivedAt !== null;
  if (isArchived && !wasArchived) {
    if (kind === 'clients') await demandNoContainers(db, id);
    else await demandNoClients(db, id);
  }
  const { organisation } = after;
  if (isArchived || organisation === null) return;
  const isThere = before !== null && !wasArchived && before.organisation === organisation;
  if (!isThere) await demandOpen(db, { kind: 'organisations', id: organisation });
}

async function demandNoContainers(db: Database, client: string): Promise<void> {
  const live = await db
    .selectFrom('containers')
    .select('id')
    .where('client_id', '=', client)
    .where('status', '!=', 'removed')
    .limit(1)
    .executeTakeFirst();
  if (live !== undefined) throw new ManagementProblem('client_in_use');
}

async function demandNoClients(db: Database, organisation: string): Promise<void> {
  const active = await db
    .selectFrom('clients')
    .select('id')
    .where('organisation_id', '=', organisation)
    .where('archived_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  if (active !== undefined) throw new ManagementProblem('organisation_in_use');
}
