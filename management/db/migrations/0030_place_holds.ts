import { type Kysely, sql } from 'kysely';

/** Things that count against a limit before the database shows them, by the change whose commit makes them. */
const STATEMENTS = [
  sql`create table place_holds (
    places text not null,
    change uuid not null,
    thing text not null,
    until timestamptz not null,
    primary key (places, change, thing))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
