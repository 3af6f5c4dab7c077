import { type Kysely, sql } from 'kysely';

/** A search also finds the Unicode form of international names. The manifest has their A-labels. */
const STATEMENTS = [
  // Punycode (RFC 3492, section 6.2). Text that isn't an A-label stays as it is.
  sql`create function unicode_label(label text) returns text
    language plpgsql immutable parallel safe set search_path = pg_catalog as $$
      declare
        digits constant text := 'abcdefghijklmnopqrstuvwxyz0123456789';
        coded text := substr(label, 5);
        basic integer := length(coded) - position('-' in reverse(coded));
        decoded text := '';
        code bigint := 128;
        place bigint := 0;
        bias bigint := 72;
        last bigint;
        weight bigint;
        base bigint;
        digit bigint;
        threshold bigint;
        delta bigint;
        next integer := 1;
      begin
        if label not like 'xn--_%' then return label; end if;
        if position('-' in coded) > 0 then
          decoded := left(coded, basic);
          next := basic + 2;
        end if;
        while next <= length(coded) loop
          last := place;
          weight := 1;
          base := 36;
          loop
            digit := position(substr(coded, next, 1) in digits) - 1;
            if next > length(coded) or digit < 0 then return label; end if;
            next := next + 1;
            place := place + digit * weight;
            threshold := greatest(1, least(26, base - bias));
            exit when digit < threshold;
            weight := weight * (36 - threshold);
            base := base + 36;
          end loop;
          delta := (place - last) / case when last = 0 then 700 else 2 end;
          delta := delta + delta / (length(decoded) + 1);
          bias := 0;
          while delta > 455 loop
            delta := delta / 35;
            bias := bias + 36;
          end loop;
          bias := bias + 36 * delta / (delta + 38);
          code := code + place / (length(decoded) + 1);
          place := place % (length(decoded) + 1);
          decoded := overlay(decoded placing chr(code::integer) from place::integer + 1 for 0);
          place := place + 1;
        end loop;
        return decoded;
      exception when others then
        return label;
      end
    $$`,
  sql`create function unicode_name(host text) returns text
    language sql immutable parallel safe set search_path = pg_catalog as $$
      select string_agg(public.unicode_label(label), '.' order by place)
      from unnest(string_to_array(host, '.')) with ordinality as labels (label, place)
    $$`,
  sql`create or replace function container_words(site_id text, manifest jsonb) returns text
    language sql immutable parallel safe set search_path = pg_catalog as $$
      select string_agg(word, E'\n') from (
        select manifest->>'name' as word
        union all select site_id
        union all select page->>'domain' from jsonb_array_elements(manifest->'domains') as page
        union all select host from jsonb_array_elements_text(manifest->'customDomains') as host
        union all select value from jsonb_each_text(manifest->'hostnames')
        union all select public.unicode_name(page->>'domain')
          from jsonb_array_elements(manifest->'domains') as page where page->>'domain' like '%xn--%'
        union all select public.unicode_name(host)
          from jsonb_array_elements_text(manifest->'customDomains') as host where host like '%xn--%'
      ) as words
    $$`,
  // The generated column is computed again.
  sql`update containers set manifest = manifest where manifest::text like '%xn--%'`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
