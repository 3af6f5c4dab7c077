import { type RawBuilder, sql } from 'kysely';
import type { Health, SiteStateName } from '../../gitops/report/site-state.ts';
import type { Actor, Database } from '../db/database.ts';
import { type ContainerStatus, type StatusReason, WATCHED } from '../lifecycle/status.ts';
import { type ContainerWithOperation, selectContainers } from './containers.repository.ts';
import { withProofs } from './domain-proofs.repository.ts';
import { visibleClients } from './memberships.repository.ts';

/** What lists are sorted by. The order of creation breaks ties. */
export const SORT_KEYS = [
  ...(['createdAt', 'updatedAt', 'name', 'state', 'status'] as const),
  ...(['domain', 'requests', 'errors', 'lastVisit'] as const),
] as const;
type SortKey = (typeof SORT_KEYS)[number];

/** The column of a key, and the form in which it is compared with a cursor's text. */
const KEYS: Readonly<
  Record<SortKey, { readonly column: RawBuilder<unknown>; readonly type: RawBuilder<unknown> }>
> = {
  createdAt: { column: sql`containers.seq`, type: sql`bigint` },
  updatedAt: { column: sql`containers.updated_at`, type: sql`timestamptz` },
  name: { column: sql`containers.folded_name`, type: sql`text` },
  state: { column: sql`containers.state_name`, type: sql`text` },
  status: { column: sql`containers.status`, type: sql`text` },
  domain: {
    column: sql`coalesce(containers.manifest->'domains'->0->>'domain', '') collate "C"`,
    type: sql`text`,
  },
  requests: { column: sql`coalesce(${dayOf(sql`sum((counts->>'n')::numeric)`)}, 0)`, type: sql`numeric` },
  errors: {
    column: sql`coalesce(${dayOf(sql`round(sum(coalesce((counts->>'x')::numeric, 0)) / nullif(sum((counts->>'n')::numeric), 0), 6)`)}, 0)`,
    type: sql`numeric`,
  },
  lastVisit: {
    column: sql`coalesce(${visitOf('traffic_minutes')}, ${visitOf('traffic_hours')}, ${visitOf('traffic_days')},
      to_timestamp(0))`,
    type: sql`timestamptz`,
  },
};

/** A sum over a container's last 24 hours, the running one included. */
function dayOf(sum: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(select ${sum} from traffic_hours where container = containers.id and not probe
    and time >= date_trunc('hour', now(), 'UTC') - interval '23 hours')`;
}

function visitOf(table: 'traffic_minutes' | 'traffic_hours' | 'traffic_days'): RawBuilder<unknown> {
  return sql`(select max(time) from ${sql.table(table)} where container = containers.id and not probe)`;
}

export interface ListOrder {
  readonly key: SortKey;
  readonly isDescending: boolean;
}

/** A place in a list, after a container: the container's value of the sort key as text, and its `seq`. */
export interface ListPosition {
  readonly key: string;
  readonly seq: string;
}

/** Reading this many containers by client takes about as long as finding the first rows of a search by words. */
const FEW = 2_000;

interface ContainerFilter {
  /** Only containers of clients that this caller may read. */
  readonly caller: Pick<Actor, 'subject'>;
  readonly client?: string | undefined;
  readonly status?: readonly ContainerStatus[] | undefined;
  readonly health?: readonly Health[] | undefined;
  readonly state?: readonly SiteStateName[] | undefined;
  readonly domain?: string | undefined;
  /** Part of the name, the site id or a name that the container serves, whatever its case. */
  readonly q?: string | undefined;
}

interface ListQuery extends ContainerFilter {
  readonly order: ListOrder;
  readonly after: ListPosition | null;
  readonly limit: number;
}

type Listed = { readonly sort_key: string };

export async function listContainers(
  db: Database,
  query: ListQuery,
): Promise<(ContainerWithOperation & Listed)[]> {
  const direction = directionOf(query.order);
  const rows = await selectContainers(db)
    .innerJoin(pageOf(db, query, await scopeOf(db, query)), 'page.place', 'containers.seq')
    .select(sql<string>`page.sort_value::text`.as('sort_key'))
    .orderBy('page.sort_value', direction)
    .orderBy('containers.seq', direction)
    .execute();
  return await withProofs(db, rows);
}

/** The fields of containers that lists show. */
export async function listSummaries(db: Database, query: ListQuery) {
  const direction = directionOf(query.order);
  return await db
    .selectFrom('containers')
    .innerJoin(pageOf(db, query, await scopeOf(db, query)), 'page.place', 'containers.seq')
    .select(['id', 'site_id', 'client_id', 'status', 'suspended', 'health', 'state'])
    .select(['created_at', 'updated_at'])
    .select([
      sql<string>`containers.seq::text`.as('seq'),
      sql<string>`containers.manifest->>'name'`.as('name'),
      sql<StatusReason | null>`coalesce(containers.status_reason,
        case when containers.status = any (${[...WATCHED]}::text[]) then containers.host_reason end)`.as(
        'status_reason',
      ),
      sql<boolean>`coalesce(containers.manifest->>'serving', 'true') = 'true'`.as('serving'),
      sql<string[]>`jsonb_path_query_array(containers.manifest, '$.domains[*].domain')`.as('domains'),
      sql<string>`page.sort_value::text`.as('sort_key'),
    ])
    .orderBy('page.sort_value', direction)
    .orderBy('containers.seq', direction)
    .execute();
}

export type SummaryRow = Awaited<ReturnType<typeof listSummaries>>[number];

/** How many of the containers that the caller may read have each combination of state, status, health and suspension. */
export async function countContainers(
  db: Database,
  { caller, client }: Pick<ContainerFilter, 'caller' | 'client'>,
): Promise<
  readonly {
    readonly status: ContainerStatus;
    readonly health: Health;
    readonly suspended: boolean;
    readonly state: SiteStateName;
    readonly count: number;
  }[]
> {
  const counted = db
    .selectFrom('container_counts')
    .select(['status', 'health', 'suspended', 'state', sql<number>`sum(containers)::integer`.as('count')])
    .where('client_id', 'in', visibleClients(db, caller))
    .groupBy(['status', 'health', 'suspended', 'state'])
    .having(sql<boolean>`sum(containers) > 0`);
  return await (client === undefined ? counted : counted.where('client_id', '=', client)).execute();
}

/** A count is the sum of several rows: replaces these by a single row for each count. */
export async function foldCounts(db: Database): Promise<void> {
  await sql`select fold_container_counts()`.execute(db);
}

/** Whose containers are listed. */
interface Scope {
  readonly clients: readonly string[];
  /** The clients have so few containers that reading all of them is faster than a search of all clients' containers. */
  readonly hasFew: boolean;
}

/**
 * Read before the list, because PostgreSQL's planner knows how many containers the named clients have, and picks the
 * index by that. For a subquery of clients, it assumes an average.
 */
async function scopeOf(db: Database, { caller, client }: ContainerFilter): Promise<Scope> {
  const visible = visibleClients(db, caller).as('visible');
  const [scope] = await db
    .with('scope', (from) =>
      from
        .selectFrom(visible)
        .select('visible.client_id')
        .$if(client !== undefined, (query) => query.where('visible.client_id', '=', client ?? '')),
    )
    .selectNoFrom((select) => [
      sql<string[]>`array(${select.selectFrom('scope').select('scope.client_id')})`.as('clients'),
      sql<boolean>`(
        select count(*) < ${FEW} from (
          select from scope join containers using (client_id) limit ${FEW}
        ) as first)`.as('hasFew'),
    ])
    .execute();
  return scope ?? { clients: [], hasFew: true };
}

/**
 * The `seq` of the containers of a page. They are searched apart from the rows, because indexes alone may suffice for
 * this search.
 */
function pageOf(db: Database, query: ListQuery, scope: Scope) {
  const { after, limit } = query;
  const { column, type } = KEYS[query.order.key];
  let found = db
    .selectFrom(candidates(db, scope).as('containers'))
    .select(['containers.seq as place', column.as('sort_value')]);
  for (const condition of conditionsOf(query)) found = found.where(condition);
  if (after !== null) {
    const operator = query.order.isDescending ? sql`<` : sql`>`;
    found = found.where(
      sql<boolean>`(${column}, containers.seq) ${operator} (${after.key}::${type}, ${after.seq}::bigint)`,
    );
  }
  const direction = directionOf(query.order);
  return found.orderBy(column, direction).orderBy('containers.seq', direction).limit(limit).as('page');
}

/** The containers of the scope. If they are few, they are read by their client: `offset 0` hides other indexes. */
function candidates(db: Database, { clients, hasFew }: Scope) {
  const containers = db
    .selectFrom('containers')
    .select(['id', 'seq', 'site_id', 'status', 'health', 'state_name', 'updated_at', 'words', 'folded_name'])
    .select('manifest')
    .where(sql<boolean>`client_id = any (${[...clients]}::uuid[])`);
  return hasFew ? containers.offset(0) : containers;
}

function directionOf({ isDescending }: ListOrder): 'asc' | 'desc' {
  return isDescending ? 'desc' : 'asc';
}

/** The conditions of a filter, each on columns that an index has. */
function conditionsOf({ status, health, state, domain, q }: ContainerFilter): RawBuilder<boolean>[] {
  const conditions: RawBuilder<boolean>[] = [];
  if (status !== undefined) conditions.push(sql<boolean>`containers.status = any (${[...status]}::text[])`);
  if (health !== undefined) conditions.push(sql<boolean>`containers.health = any (${[...health]}::text[])`);
  if (state !== undefined) conditions.push(sql<boolean>`containers.state_name = any (${[...state]}::text[])`);
  if (domain !== undefined) {
    conditions.push(
      sql<boolean>`containers.site_id in (select site_id from site_domains where domain = ${domain})`,
    );
  }
  if (q !== undefined) {
    const literal = q.replace(/[\\%_]/g, '\\$&');
    conditions.push(sql<boolean>`containers.words like '%' || search_fold(${literal}::text) || '%'`);
  }
  return conditions;
}
