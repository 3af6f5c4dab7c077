import { domainToUnicode } from 'node:url';
import { type Kysely, sql } from 'kysely';

interface Row {
  readonly id: string;
  readonly manifest: {
    readonly domains: readonly { readonly domain: string }[];
    readonly customDomains: readonly string[];
  };
}

/** A search also finds the Unicode form of international names, which manifests are stored with from now on. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create or replace function container_words(site_id text, manifest jsonb) returns text
    language sql immutable parallel safe set search_path = pg_catalog as $$
      select string_agg(word, E'\n') from (
        select manifest->>'name' as word
        union all select site_id
        union all select page->>'domain' from jsonb_array_elements(manifest->'domains') as page
        union all select host from jsonb_array_elements_text(manifest->'customDomains') as host
        union all select value from jsonb_each_text(manifest->'hostnames')
        union all select host from jsonb_array_elements_text(manifest->'unicodeNames') as host
      ) as words
    $$`.execute(db);
  const { rows } = await sql<Row>`
    select id, manifest from containers where manifest::text like '%xn--%'`.execute(db);
  for (const { id, manifest } of rows) {
    const hosts = [...manifest.domains.map(({ domain }) => domain), ...manifest.customDomains];
    const unicodeNames = hosts.filter((host) => host.includes('xn--')).map(domainToUnicode);
    if (unicodeNames.length === 0) continue;
    await sql`update containers set manifest = manifest || ${JSON.stringify({ unicodeNames })}::jsonb
      where id = ${id}`.execute(db);
  }
}
