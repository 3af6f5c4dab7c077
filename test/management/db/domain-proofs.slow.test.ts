import { PGlite } from '@electric-sql/pglite';
import { Kysely } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Database, Tables } from '../../../management/db/database.ts';
import { EmbeddedDialect } from '../../../management/db/embedded-dialect.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { rememberProofs } from '../../../management/records/domain-proofs.repository.ts';

const ADA = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const BOB = '7c9e6679-7425-40de-944b-e07fc1f90aff';

let db: Database;
beforeEach(async () => {
  db = new Kysely<Tables>({ dialect: new EmbeddedDialect({ pglite: await PGlite.create() }) });
});
afterEach(() => db.destroy());

const addClients = () =>
  db
    .insertInto('clients')
    .values([
      { id: ADA, name: 'Ada' },
      { id: BOB, name: 'Bob' },
    ])
    .execute();
const proofs = () =>
  db
    .selectFrom('domain_proofs')
    .select(['client_id', 'domain', 'status', 'absent_since', 'settled'])
    .orderBy('client_id')
    .orderBy('domain')
    .execute();

test('after an upgrade, every domain that a client has is proven', async () => {
  await migrate(db, '0010_organisations');
  await addClients();
  const container = (id: string, client_id: string, site_id: string) => ({
    id,
    client_id,
    site_id,
    status: 'active' as const,
    manifest: '{}',
  });
  const [one, two] = ['3f0a6679-7425-40de-944b-e07fc1f90001', '3f0a6679-7425-40de-944b-e07fc1f90002'];
  await db
    .insertInto('containers')
    .values([container(one, ADA, 'one'), container(two, BOB, 'two')])
    .execute();
  const claims = ['shop.acme.example', 'data.acme.example', 'ada.github.io'];
  await db
    .insertInto('domain_claims')
    .values([
      ...claims.map((domain) => ({ domain, container_id: one })),
      { domain: 'other.acme.example', container_id: two },
    ])
    .execute();
  await migrate(db);
  expect((await proofs()).map(({ client_id, ...row }) => [client_id, row.domain, row.status])).toEqual([
    [ADA, 'acme.example', 'proven'],
    [ADA, 'ada.github.io', 'proven'],
    [BOB, 'acme.example', 'proven'],
  ]);
});

test('a manifest says what a lost database knew, and is corrected where the database knows more', async () => {
  await migrate(db);
  await addClients();
  await rememberProofs(db, { client: ADA, unproven: ['b.example'] }, ['www.a.example', 'b.example']);
  const known = [
    { domain: 'a.example', status: 'proven', settled: true },
    { domain: 'b.example', status: 'pending', settled: true },
  ];
  expect(await proofs()).toMatchObject(known);
  // The same again changes nothing.
  await rememberProofs(db, { client: ADA, unproven: ['b.example'] }, ['www.a.example', 'b.example']);
  expect(await proofs()).toMatchObject(known);
  // A version without the entry proves nothing: git is to be corrected.
  await rememberProofs(db, { client: ADA }, ['www.a.example', 'b.example']);
  expect(await proofs()).toMatchObject([
    known[0],
    { domain: 'b.example', status: 'pending', settled: false },
  ]);
});

test('a site moved to another client keeps its domain; if the former client has proven it, only for a while', async () => {
  await migrate(db);
  await addClients();
  await rememberProofs(db, { client: ADA }, ['older.example', 'acme.example']);
  await db
    .updateTable('domain_proofs')
    .set({ seen_at: new Date() })
    .where('domain', '=', 'acme.example')
    .execute();
  await rememberProofs(db, { client: BOB }, ['older.example', 'acme.example']);
  expect((await proofs()).filter(({ client_id }) => client_id === BOB)).toMatchObject([
    { domain: 'acme.example', status: 'proven', absent_since: expect.any(Date) },
    { domain: 'older.example', status: 'proven', absent_since: null },
  ]);
});
