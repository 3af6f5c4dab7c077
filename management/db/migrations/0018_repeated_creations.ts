import { type Kysely, sql } from 'kysely';

/**
 * Idempotency keys of creations of anything but a container. `made` is the id that each attempt uses; `answer` is
 * sealed with the key, of which only a digest is stored.
 */
const STATEMENTS = [
  sql`alter table idempotency_keys
    alter column container_id drop not null,
    add column made uuid,
    add column running_until timestamptz,
    add check ((container_id is null) <> (made is null))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
