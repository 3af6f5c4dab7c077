import { type Kysely, sql } from 'kysely';

/**
 * Columns for searching and sorting lists of containers, computed from the manifest, with an index for each order.
 */
const STATEMENTS = [
  // Without accents and case: `Müller` and `MULLER` are both found by `muller`.
  sql`create function search_fold(given text) returns text
    language sql immutable parallel safe set search_path = pg_catalog as $$
      select lower(regexp_replace(normalize(given, NFKD), '[\u0300-\u036f]', '', 'g'))
    $$`,
  // Name, site id, and every name that the container serves, separated by line breaks.
  sql`create function container_words(site_id text, manifest jsonb) returns text
    language sql immutable parallel safe set search_path = pg_catalog as $$
      select string_agg(word, E'\n') from (
        select manifest->>'name' as word
        union all select site_id
        union all select page->>'domain' from jsonb_array_elements(manifest->'domains') as page
        union all select host from jsonb_array_elements_text(manifest->'customDomains') as host
        union all select value from jsonb_each_text(manifest->'hostnames')
      ) as words
    $$`,
  sql`alter table containers
    add column words text generated always as (public.search_fold(public.container_words(site_id, manifest))) stored,
    add column folded_name text collate "C" generated always as (public.search_fold(manifest->>'name')) stored,
    add column suspended boolean not null
      generated always as (coalesce(manifest->'suspend' = 'true'::jsonb, false)) stored`,
  // Without the extension, a search reads all containers: correct, and slow only from tens of thousands on.
  sql`do $$ begin
      create extension if not exists pg_trgm;
      create index containers_by_words on containers using gin (words gin_trgm_ops);
    exception when insufficient_privilege or undefined_file or undefined_object or feature_not_supported then
      raise warning 'containers are searched without an index, because pg_trgm can''t be created: %', sqlerrm;
    end $$`,
  // Includes the words: while a search passes containers that don't match, it reads only the index, not their rows.
  sql`create index containers_by_name on containers (folded_name, seq) include (client_id, words)`,
  sql`create index containers_by_update on containers (updated_at, seq)`,
  // Answers counts from the index alone.
  sql`create index containers_counted on containers (client_id, status, health, suspended)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
