import { isDeepStrictEqual } from 'node:util';
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { type Role, strongestRole } from '../lifecycle/roles.ts';
import { type DatedState, type DnsFacts, derivedOf, type StateBasis } from '../lifecycle/site-facts.ts';
import {
  type ContainerStatus,
  canMove,
  type EventKind,
  type HostReason,
  isProjectionReason,
  type StatusReason,
} from '../lifecycle/status.ts';
import { type ProofRow, withProofs } from './domain-proofs.repository.ts';
import { addEvent, type Cause } from './events.repository.ts';
import { withoutForeignNames } from './foreign-names.repository.ts';
import { grantsOf } from './memberships.repository.ts';
import { isNoneOf } from './places.repository.ts';

/** The columns that a container is read with: all but those that only lists need. */
const COLUMNS = [
  'containers.id',
  'containers.seq',
  'containers.site_id',
  'containers.client_id',
  'containers.status',
  'containers.status_reason',
  'containers.status_detail',
  'containers.health',
  'containers.host_reason',
  'containers.host_detail',
  'containers.host_refusal',
  'containers.dns',
  'containers.first_visit_at',
  'containers.state',
  'containers.manifest',
  'containers.revision',
  'containers.created_at',
  'containers.updated_at',
] as const;

export type ContainerRow = Omit<
  Selectable<Tables['containers']>,
  'words' | 'folded_name' | 'suspended' | 'state_name' | 'dns_next_at'
>;
type LatestOperation = Pick<Selectable<Tables['operations']>, 'id' | 'kind' | 'status' | 'step'>;
/** A container with its newest operation. `seq` is text. */
export type ContainerWithOperation = ContainerRow & {
  operation: LatestOperation | null;
  /** What is known of the proofs of its domains. */
  readonly proofs?: readonly ProofRow[];
};

/** `false`: the site id or the container id is taken. */
export async function insertContainer(
  db: Database,
  {
    manifest,
    ...row
  }: Omit<Insertable<Tables['containers']>, 'manifest'> & { readonly manifest: ManifestView },
  cause: Cause,
): Promise<boolean> {
  const facts = { ...UNKNOWN, status: row.status, manifest };
  const inserted = await db
    .insertInto('containers')
    .values({
      ...row,
      manifest: JSON.stringify(manifest),
      state: JSON.stringify(derivedOf(facts, null, new Date()).state),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  if (inserted === undefined) return false;
  await addEvent(db, event(row.id, 'status', row.status, cause));
  return true;
}

export function selectContainers(db: Database) {
  return db
    .selectFrom('containers')
    .leftJoinLateral(
      (inner) =>
        inner
          .selectFrom('operations')
          .select((select) =>
            sql<LatestOperation>`jsonb_build_object('id', ${select.ref('operations.id')}, 'kind', ${select.ref('operations.kind')}, 'status', ${select.ref('operations.status')}, 'step', ${select.ref('operations.step')})`.as(
              'operation',
            ),
          )
          .whereRef('operations.container_id', '=', 'containers.id')
          .orderBy('operations.seq', 'desc')
          .limit(1)
          .as('latest'),
      (join) => join.onTrue(),
    )
    .select(COLUMNS)
    .select(['latest.operation', sql<string>`containers.seq::text`.as('seq')]);
}

export async function findContainer(db: Database, id: string): Promise<ContainerWithOperation | undefined> {
  const rows = await selectContainers(db).where('containers.id', '=', id).execute();
  return (await withProofs(db, rows))[0];
}

/** A container with the subject's strongest role in its client. `null`: there is none, or the subject has no role. */
export async function findContainerFor(
  db: Database,
  id: string,
  subject: string,
): Promise<{ container: ContainerWithOperation; role: Role } | null> {
  const rows = await selectContainers(db)
    .innerJoin(grantsOf(db, subject).as('granted'), 'granted.client_id', 'containers.client_id')
    .select('granted.role')
    .where('containers.id', '=', id)
    .execute();
  const granted = strongestRole(rows.map(({ role }) => role));
  const [row] = await withProofs(db, rows.slice(0, 1));
  if (row === undefined || granted === null) return null;
  const { role: _, ...container } = row;
  return { container, role: granted };
}

/**
 * Locks the row until the transaction ends. To avoid deadlocks, a transaction that writes several tables of a container
 * takes this lock first, before it writes operations, claims, ports and site records. Inserts of rows that refer to the
 * container don't wait for the lock, because it doesn't cover the key.
 */
export async function lockContainer(db: Database, id: string): Promise<ContainerRow> {
  return await db
    .selectFrom('containers')
    .select(COLUMNS)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
}

/** What is known of a container that is new. */
const UNKNOWN = {
  status_reason: null,
  status_detail: null,
  host_reason: null,
  host_detail: null,
  host_refusal: null,
  dns: {},
} as const satisfies Partial<StateBasis>;

type Facts = Partial<Omit<StateBasis, 'manifest'>> & { readonly manifest?: ManifestView };

/**
 * The only way in which a container's facts change: its state is derived from them in the same statement. An event says
 * when the state has another name. The row must be locked.
 */
async function changeFacts(
  trx: Database,
  row: ContainerRow,
  facts: Facts,
  {
    cause = NO_CAUSE,
    events = [],
    ...values
  }: Pick<Updateable<Tables['containers']>, 'client_id' | 'revision' | 'dns_next_at'> & {
    readonly cause?: Cause;
    /** The events of the change itself. */
    readonly events?: readonly Insertable<Tables['container_events']>[];
  } = {},
): Promise<void> {
  const after = { ...row, ...facts };
  const now = new Date();
  const { state, health } = derivedOf(after, row.state, now);
  const { manifest, dns, ...plain } = facts;
  await trx
    .updateTable('containers')
    .set({
      ...plain,
      ...values,
      health,
      ...(manifest === undefined ? {} : { manifest: JSON.stringify(manifest) }),
      ...(dns === undefined ? {} : { dns: JSON.stringify(dns) }),
      state: JSON.stringify(state),
      updated_at: now,
    })
    .where('id', '=', row.id)
    .execute();
  for (const one of events) await addEvent(trx, one);
  if (state.name !== row.state.name) await addEvent(trx, stateEvent(row.id, after.status, state, cause));
}

const NO_CAUSE: Cause = { actor: null, requestId: null, revision: null };

function stateEvent(id: string, status: ContainerStatus, state: DatedState, cause: Cause) {
  const { name, sentence, detail } = state;
  return {
    ...event(id, 'state', status, cause),
    state: name,
    detail: detail === null ? sentence : `${sentence} ${detail}`,
  };
}

/** Runs the work in the transaction that is open, or else in one of its own. */
async function inTransaction<Result>(
  db: Database,
  work: (trx: Database) => Promise<Result>,
): Promise<Result> {
  return db.isTransaction ? await work(db) : await db.transaction().execute(work);
}

/**
 * Changes a container's status and adds an event. `false`: the transition isn't allowed, and nothing changed. The
 * reason of the previous status is replaced, by `null` unless one is given.
 */
export async function moveContainer(
  db: Database,
  id: string,
  to: ContainerStatus,
  given: Cause & { readonly reason?: StatusReason | null; readonly detail?: string | null },
): Promise<boolean> {
  const { reason = null, detail: text = null, ...cause } = given;
  return await inTransaction(db, async (trx) => {
    const row = await lockContainer(trx, id);
    if (!canMove(row.status, to)) return false;
    const detail = text === null ? null : await withoutForeignNames(trx, id, text);
    // What the host reported of the site before says nothing about its removal, or about the restored one.
    const { host_reason, host_detail, host_refusal } = UNKNOWN;
    const host = ['deprovisioning', 'provisioning'].includes(to)
      ? { host_reason, host_detail, host_refusal }
      : {};
    await changeFacts(
      trx,
      row,
      { status: to, status_reason: reason, status_detail: detail, ...host },
      { cause, events: [{ ...event(id, 'status', to, cause), reason, detail }] },
    );
    return true;
  });
}

/** Why the newest manifest in git isn't applied, for a program and in words. */
export interface ProjectionObstacle {
  readonly reason: StatusReason;
  readonly detail: string;
}

/** Records why the newest manifest in git isn't applied, or (with `null`) that it is. The status is unchanged. */
export async function setObstacle(
  db: Database,
  { id, status }: Pick<ContainerRow, 'id' | 'status'>,
  obstacle: ProjectionObstacle | null,
  cause: Cause,
): Promise<void> {
  const { reason, detail } = obstacle ?? { reason: null, detail: null };
  const events = reason === null ? [] : [{ ...event(id, 'manifest_refused', status, cause), reason, detail }];
  await inTransaction(db, async (trx) => {
    const row = await lockContainer(trx, id);
    await changeFacts(trx, row, { status_reason: reason, status_detail: detail }, { cause, events });
  });
}

/** Replaces the text that says what the present status waits for, or which checks failed. */
export async function setDetail(
  db: Database,
  id: string,
  { status, detail }: { readonly status: ContainerStatus; readonly detail: string | null },
): Promise<void> {
  await inTransaction(db, async (trx) => {
    const row = await lockContainer(trx, id);
    if (row.status !== status || isProjectionReason(row.status_reason) || row.status_detail === detail)
      return;
    await changeFacts(trx, row, { status_detail: detail });
  });
}

/** What the host reports of a site. */
export interface HostVerdict {
  /** What keeps the host from applying or repairing what git says; `null`: nothing. */
  readonly obstacle: { readonly reason: HostReason; readonly detail: string } | null;
  /** Why it refuses the newest manifest, also behind another obstacle; `null`: it doesn't. */
  readonly refusal: string | null;
}

/** Records what the host reports. */
export async function setVerdict(
  trx: Database,
  row: ContainerRow,
  { obstacle, refusal }: HostVerdict,
): Promise<void> {
  const { reason, detail } = obstacle ?? { reason: null, detail: null };
  await changeFacts(
    trx,
    row,
    { host_reason: reason, host_detail: detail, host_refusal: refusal },
    { events: [{ ...event(row.id, 'host', row.status, NO_CAUSE), reason, detail }] },
  );
}

/** Records what the resolvers answered for a container's custom domains, and when to ask them again. */
export async function setDns(db: Database, id: string, dns: DnsFacts, nextAt: Date): Promise<void> {
  await inTransaction(db, async (trx) => {
    const row = await lockContainer(trx, id);
    if (isDeepStrictEqual(row.dns, dns)) {
      await trx.updateTable('containers').set({ dns_next_at: nextAt }).where('id', '=', id).execute();
    } else await changeFacts(trx, row, { dns }, { dns_next_at: nextAt });
  });
}

/** Derives the states of the containers that an update of the database has left without one. */
export async function deriveStates(db: Database): Promise<void> {
  for (;;) {
    const rows = await db
      .selectFrom('containers')
      .select(COLUMNS)
      .where(sql<boolean>`state->>'since' = ${UNDERIVED}`)
      .limit(500)
      .execute();
    if (rows.length === 0) return;
    const states = rows.map((row) => ({ id: row.id, ...derivedOf(row, null, row.updated_at) }));
    await sql`
      update containers set state = given.state, health = given.health
      from jsonb_to_recordset(${JSON.stringify(states)}::jsonb) as given(id uuid, state jsonb, health text)
      where given.id = containers.id`.execute(db);
  }
}

/** The time in the state that the database gives a row by default. */
const UNDERIVED = new Date(0).toISOString();

/** The commit of the recorded manifest; `null`: that manifest is not in git yet. */
export async function committedRevision(db: Database, id: string): Promise<string | null> {
  const { revision } = await db
    .selectFrom('containers')
    .select('revision')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return revision;
}

/** How many containers besides these a client has, without removed and failed ones. */
export async function countCurrentContainers(
  db: Database,
  client: string,
  besides: readonly string[],
): Promise<number> {
  const { count } = await db
    .selectFrom('containers')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('client_id', '=', client)
    .where('status', 'not in', ['removed', 'failed'])
    .where(isNoneOf(besides))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The site ids that any container has or had and that are this one, or this one with a suffix. */
export async function siteIdsLike(db: Database, base: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('containers')
    .select('site_id')
    .where(({ or, eb }) => or([eb('site_id', '=', base), eb('site_id', 'like', `${base}-_____`)]))
    .execute();
  return new Set(rows.map(({ site_id }) => site_id));
}

/** Whether any container waits for ports or domains that another one holds. */
export async function isAnyObstructed(db: Database): Promise<boolean> {
  const waiting = await db
    .selectFrom('containers')
    .select('id')
    .where('status_reason', 'in', ['port_taken', 'domain_in_use'])
    .executeTakeFirst();
  return waiting !== undefined;
}

/** Records the manifest that git holds. */
export async function projectManifest(
  trx: Database,
  row: ContainerRow,
  manifest: ManifestView,
  cause: Cause,
): Promise<void> {
  const hasNewHosts = !isDeepStrictEqual(row.manifest.customDomains, manifest.customDomains);
  await changeFacts(
    trx,
    row,
    { manifest },
    {
      client_id: manifest.client,
      revision: cause.revision,
      ...(hasNewHosts ? { dns_next_at: null } : {}),
      cause,
      events: [event(row.id, 'changed', row.status, cause)],
    },
  );
}

function event(
  container: string,
  kind: EventKind,
  status: ContainerStatus,
  { actor, requestId, revision }: Cause,
) {
  return { container_id: container, kind, status, actor, request_id: requestId, revision };
}
