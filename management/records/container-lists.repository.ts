import { type RawBuilder, sql } from 'kysely';
import type { Actor, Database } from '../db/database.ts';
import type { ContainerStatus, Health } from '../lifecycle/status.ts';
import { type ContainerWithOperation, selectContainers } from './containers.repository.ts';
import { withProofs } from './domain-proofs.repository.ts';
import { visibleClients } from './memberships.repository.ts';

/** What lists are sorted by. The order of creation breaks ties. */
export const SORT_KEYS = ['createdAt', 'updatedAt', 'name', 'status'] as const;
type SortKey = (typeof SORT_KEYS)[number];

/** The column of a key, and the form in which it is compared with a cursor's text. */
const KEYS: Readonly<
  Record<SortKey, { readonly column: RawBuilder<unknown>; readonly type: RawBuilder<unknown> }>
> = {
  createdAt: { column: sql`containers.seq`, type: sql`bigint` },
  updatedAt: { column: sql`containers.updated_at`, type: sql`timestamptz` },
  name: { column: sql`containers.folded_name`, type: sql`text` },
  status: { column: sql`containers.status`, type: sql`text` },
};

export interface ListOrder {
  readonly key: SortKey;
  readonly isDescending: boolean;
}

/** A place in a list, after a container: the container's key as text, and its `seq`. */
export interface ListPosition {
  readonly key: string;
  readonly seq: string;
}

interface ContainerFilter {
  /** Only containers of clients that this caller may read. */
  readonly caller: Pick<Actor, 'subject'>;
  readonly client?: string | undefined;
  readonly status?: readonly ContainerStatus[] | undefined;
  readonly health?: readonly Health[] | undefined;
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
    .innerJoin(pageOf(db, query), 'page.place', 'containers.seq')
    .select(sql<string>`${KEYS[query.order.key].column}::text`.as('sort_key'))
    .orderBy(KEYS[query.order.key].column, direction)
    .orderBy('containers.seq', direction)
    .execute();
  return await withProofs(db, rows);
}

/** The members of containers that lists show. */
export async function listSummaries(db: Database, query: ListQuery) {
  const { column } = KEYS[query.order.key];
  const direction = directionOf(query.order);
  return await db
    .selectFrom('containers')
    .innerJoin(pageOf(db, query), 'page.place', 'containers.seq')
    .select(['id', 'site_id', 'client_id', 'status', 'status_reason', 'suspended', 'health'])
    .select(['created_at', 'updated_at'])
    .select([
      sql<string>`containers.seq::text`.as('seq'),
      sql<string>`containers.manifest->>'name'`.as('name'),
      sql<string[]>`jsonb_path_query_array(containers.manifest, '$.domains[*].domain')`.as('domains'),
      sql<string>`${column}::text`.as('sort_key'),
    ])
    .orderBy(column, direction)
    .orderBy('containers.seq', direction)
    .execute();
}

export type SummaryRow = Awaited<ReturnType<typeof listSummaries>>[number];

/** How many of the containers that the caller may read have each combination of these. */
export async function countContainers(
  db: Database,
  { caller, client }: Pick<ContainerFilter, 'caller' | 'client'>,
): Promise<
  readonly {
    readonly status: ContainerStatus;
    readonly health: Health;
    readonly suspended: boolean;
    readonly count: number;
  }[]
> {
  // Client by client, each counted from the index in its order.
  const counted = db
    .selectFrom(visibleClients(db, caller).as('visible'))
    .innerJoinLateral(
      (inner) =>
        inner
          .selectFrom('containers')
          .select(['status', 'health', 'suspended', sql<number>`count(*)`.as('count')])
          .whereRef('containers.client_id', '=', 'visible.client_id')
          .groupBy(['status', 'health', 'suspended'])
          .as('counted'),
      (join) => join.onTrue(),
    )
    .select(['counted.status', 'counted.health', 'counted.suspended'])
    .select(sql<number>`sum(counted.count)::integer`.as('count'))
    .groupBy(['counted.status', 'counted.health', 'counted.suspended']);
  return await (client === undefined ? counted : counted.where('visible.client_id', '=', client)).execute();
}

/** The `seq` of the containers of a page. It is searched apart from the rows, because indexes alone may answer it. */
function pageOf(db: Database, query: ListQuery) {
  const { after, limit } = query;
  const { column, type } = KEYS[query.order.key];
  let found = db.selectFrom('containers').select('containers.seq as place');
  for (const condition of conditionsOf(db, query)) found = found.where(condition);
  if (after !== null) {
    const operator = query.order.isDescending ? sql`<` : sql`>`;
    found = found.where(
      sql<boolean>`(${column}, containers.seq) ${operator} (${after.key}::${type}, ${after.seq}::bigint)`,
    );
  }
  const direction = directionOf(query.order);
  return found.orderBy(column, direction).orderBy('containers.seq', direction).limit(limit).as('page');
}

function directionOf({ isDescending }: ListOrder): 'asc' | 'desc' {
  return isDescending ? 'desc' : 'asc';
}

/** The conditions of a filter, each on columns that an index has. */
function conditionsOf(
  db: Database,
  { caller, client, status, health, domain, q }: ContainerFilter,
): RawBuilder<boolean>[] {
  const conditions = [sql<boolean>`containers.client_id in ${visibleClients(db, caller)}`];
  if (client !== undefined) conditions.push(sql<boolean>`containers.client_id = ${client}`);
  if (status !== undefined) conditions.push(sql<boolean>`containers.status = any (${[...status]}::text[])`);
  if (health !== undefined) conditions.push(sql<boolean>`containers.health = any (${[...health]}::text[])`);
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
