import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

const OTHERS = '(another site)';
const TOKEN = /\b(?:lt|ct)_[A-Za-z0-9]{16,64}\b/g;

/** The separator of joined texts. No name contains it, so no name is found across the end of a text. */
const BREAK = '\u0001';
/** Characters that are removed from texts: the separator, and NUL, which PostgreSQL doesn't take. */
const UNJOINABLE = new RegExp(`[\\0${BREAK}]`, 'g');

/**
 * A text about a container in a form that its client may read: the ids, hostnames and domains of other clients' sites
 * and other containers' tokens are replaced. The provisioner writes for operators; it may name a conflict's other site.
 */
export async function withoutForeignNames(db: Database, container: string, text: string): Promise<string> {
  const [shown = ''] = await textsWithoutForeignNames(db, container, [text]); // as many texts as were given
  return shown;
}

/**
 * Like `withoutForeignNames`, for several texts. Never pass JSON: a site may have the name of a key, which would be
 * replaced.
 */
export async function textsWithoutForeignNames(
  db: Database,
  container: string,
  texts: readonly string[],
): Promise<string[]> {
  if (texts.length === 0) return [];
  const joined = texts.map((text) => text.replaceAll(UNJOINABLE, ' ')).join(BREAK);
  return (await replaced(db, container, joined)).split(BREAK);
}

async function replaced(db: Database, container: string, text: string): Promise<string> {
  const { rows } = await sql<{ name: string; is_own: boolean }>`
    with named as (
      select id as container_id, client_id, unnest(array[site_id, id::text]) as name from containers
      union all
      select container_id, client_id, unnest(array[edge_hostname, origin_hostname, preview_hostname])
      from sites join containers on containers.id = sites.container_id
      union all
      select container_id, client_id, domain
      from domain_claims join containers on containers.id = domain_claims.container_id
    )
    select distinct name, client_id = (select client_id from containers where id = ${container}) as is_own
    from named
    where name is not null and position(name in lower(${text})) > 0
  `.execute(db);
  const own = rows.filter(({ is_own }) => is_own).map(({ name }) => name);
  const foreign = rows.filter(({ is_own }) => !is_own).map(({ name }) => name);
  const tokens = await foreignTokens(db, container, text);
  if (foreign.length === 0 && tokens.length === 0) return text;
  // Longer names first. The pattern also has the client's own names, so that no part of one of these is replaced.
  const names = [...new Set([...own, ...foreign, ...tokens])].sort((a, b) => b.length - a.length);
  // Names consist of letters, digits, - and dots; tokens also have a _. Only the dots need an escape.
  const pattern = names.map((name) => name.replaceAll('.', '\\.')).join('|');
  return text.replace(new RegExp(`(?<![a-z0-9-])(?:${pattern})(?![a-z0-9-])`, 'gi'), (name) =>
    own.includes(name.toLowerCase()) ? name : OTHERS,
  );
}

/** The tokens in a text that aren't the container's own. */
async function foreignTokens(db: Database, container: string, text: string): Promise<string[]> {
  const tokens = text.match(TOKEN) ?? [];
  if (tokens.length === 0) return [];
  const { manifest } = await db
    .selectFrom('containers')
    .select('manifest')
    .where('id', '=', container)
    .executeTakeFirstOrThrow();
  const own = JSON.stringify(manifest);
  return tokens.filter((token) => !own.includes(token));
}
