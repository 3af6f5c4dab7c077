import { sql } from 'kysely';
import type { Actor, Database } from '../db/database.ts';
import { proofEnd } from '../lifecycle/proof.ts';
import { visibleClients } from '../records/memberships.repository.ts';

/** Something that a container has and that ends. */
export interface Ending {
  readonly kind: 'certificate' | 'proof' | 'loader_token' | 'forwarder_token';
  readonly at: string;
  readonly subject: string | null;
  readonly containerId: string;
  readonly name: string;
}

interface Within {
  readonly caller: Pick<Actor, 'subject'>;
  readonly from: Date;
  readonly to: Date;
  readonly most: number;
}

interface Row {
  readonly id: string;
  readonly name: string;
  readonly subject: string | null;
  readonly at: Date;
}

/** Containers that the caller may read, and that are not removed. */
function visible(db: Database, caller: Within['caller']) {
  return sql`containers.client_id in (${visibleClients(db, caller)}) and containers.status <> 'removed'`;
}

/** Old tokens of loaders and forwarders that are accepted until a time within the range. */
export async function endingTokens(db: Database, { caller, from, to, most }: Within): Promise<Ending[]> {
  const { rows } = await sql<Row & { kind: Ending['kind'] }>`
    select * from (
      select 'loader_token' as kind, containers.id, containers.manifest->>'name' as name,
        null::text as subject, (token->>'until')::timestamptz as at
      from containers, jsonb_array_elements(
        coalesce(containers.manifest->'previousLoaderTokens', '[]'::jsonb)) as token
      where ${visible(db, caller)}
      union all
      select 'forwarder_token', containers.id, containers.manifest->>'name', page->>'domain',
        (page#>>'{sameOrigin,forwarder,previous,until}')::timestamptz
      from containers, jsonb_array_elements(containers.manifest->'domains') as page
      where ${visible(db, caller)}
    ) as ending
    where at > ${from} and at <= ${to}
    order by at, id limit ${most}`.execute(db);
  return rows.map(({ kind, ...row }) => endingFrom(kind, row));
}

/** Proofs that are lost by the range's end, because their record is missing; each with one container that needs it. */
export async function endingProofs(db: Database, { caller, to, most }: Within): Promise<Ending[]> {
  const { rows } = await sql<Row>`
    select needing.id, needing.name, proof.domain as subject, proof.absent_since as at
    from domain_proofs as proof, lateral (
      select containers.id, containers.manifest->>'name' as name
      from containers, jsonb_array_elements(containers.manifest->'domains') as page
      where ${visible(db, caller)} and containers.client_id = proof.client_id
        and (page->>'domain' = proof.domain or right(page->>'domain', length(proof.domain) + 1) = '.' || proof.domain)
      order by containers.id limit 1
    ) as needing
    where proof.status = 'proven' and proof.absent_since is not null
    order by proof.absent_since, proof.domain limit ${most}`.execute(db);
  return rows
    .map((row) => endingFrom('proof', { ...row, at: proofEnd(new Date(row.at)) }))
    .filter(({ at }) => at <= to.toISOString());
}

function endingFrom(kind: Ending['kind'], { id, name, subject, at }: Row): Ending {
  return { kind, at: new Date(at).toISOString(), subject, containerId: id, name };
}

/** The containers of these sites that the caller may read, by site. */
export async function visibleSites(
  db: Database,
  caller: Within['caller'],
  sites: readonly string[],
): Promise<ReadonlyMap<string, { readonly id: string; readonly name: string }>> {
  if (sites.length === 0) return new Map();
  const { rows } = await sql<{ id: string; site: string; name: string }>`
    select containers.id, containers.site_id as site, containers.manifest->>'name' as name from containers
    where ${visible(db, caller)}
      and containers.site_id in (select jsonb_array_elements_text(${JSON.stringify(sites)}::jsonb))`.execute(
    db,
  );
  return new Map(rows.map(({ site, ...container }) => [site, container]));
}
