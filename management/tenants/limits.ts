import { sql } from 'kysely';
import { counted } from '../../base/text.ts';
import { demandOpen, type TenantRef } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { demandPlaces, holdPlaces, isNoneOf, lockPlaces, type Places } from '../records/places.repository.ts';
import type { Tenant } from './tenant-file.ts';

const ofOrganisation = (id: string) => `clients of ${id}`;
const OF_PERSON = 'clients of the person ';

/**
 * Throws `limit_reached` if a change of a client gives its organisation or a new member more clients than are allowed.
 * Archived clients don't count. With `change`, the client counts for them from now on, until `releasePlaces`.
 */
export async function demandClientLimits(
  { db, settings }: Pick<Context, 'db' | 'settings'>,
  { kind, id }: TenantRef,
  {
    before,
    after,
    change,
  }: { readonly before: Tenant | null; readonly after: Tenant; readonly change: string | null },
): Promise<void> {
  if (kind !== 'clients' || after.archivedAt !== null) return;
  const isNew = before === null || before.archivedAt !== null;
  const { clientsPerOrganisation, clientsPerPerson } = settings.quotas;
  const { organisation } = after;
  const joined =
    organisation !== null && (isNew || before.organisation !== organisation) ? organisation : null;
  const known = new Set(isNew ? [] : before.members.map(({ subject }) => subject));
  const added = after.members.map(({ subject }) => subject).filter((subject) => !known.has(subject));
  const places = [
    ...(joined === null ? [] : [ofOrganisation(joined)]),
    ...added.map((subject) => `${OF_PERSON}${subject}`),
  ];
  if (places.length === 0) return;
  await db.transaction().execute(async (trx) => {
    await lockPlaces(trx, places);
    if (joined !== null) {
      await demandPlaces(trx, placesIn(joined, clientsPerOrganisation), [id]);
    }
    const full = await fullSubject(trx, added, { most: clientsPerPerson, but: id });
    if (full !== null) {
      throw new ManagementProblem('limit_reached', {
        detail: `${full} is a member of ${counted(clientsPerPerson, 'client')}, the most for one person; give the role in an organisation, where it holds for all its clients, or ask the operator to raise CLIENTS_PER_PERSON`,
      });
    }
    if (change !== null) await holdPlaces(trx, change, places, [id]);
  });
}

function placesIn(organisation: string, most: number): Places {
  return {
    of: ofOrganisation(organisation),
    most,
    count: (trx, besides) => countClients(trx, organisation, besides),
    refusal: () =>
      new ManagementProblem('limit_reached', {
        detail: `an organisation has at most ${counted(most, 'client')}; archive one, or ask the operator to raise CLIENTS_PER_ORGANISATION`,
      }),
  };
}

/** How many clients besides these the organisation has. */
async function countClients(db: Database, organisation: string, besides: readonly string[]): Promise<number> {
  const { count } = await db
    .selectFrom('clients')
    .select(sql<number>`count(*)::integer`.as('count'))
    .where('organisation_id', '=', organisation)
    .where('archived_at', 'is', null)
    .where(isNoneOf(besides))
    .executeTakeFirstOrThrow();
  return count;
}

/** The first of the subjects that is a member of `most` other clients; `null`: none is. */
async function fullSubject(
  db: Database,
  subjects: readonly string[],
  { most, but }: { readonly most: number; readonly but: string },
): Promise<string | null> {
  const { rows } = await sql<{ subject: string }>`
    select subject from (
      select own.subject, own.client_id::text as client
      from client_memberships as own join clients on clients.id = own.client_id
      where own.subject = any (${subjects}::text[]) and clients.archived_at is null
      union
      select subject, hold.thing
      from unnest(${subjects}::text[]) as subject join place_holds as hold on hold.places = ${OF_PERSON} || subject
      where hold.until > now()
    ) as known
    where client <> ${but}
    group by subject having count(*) >= ${most}
    order by subject limit 1`.execute(db);
  return rows[0]?.subject ?? null;
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
