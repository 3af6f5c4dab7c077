import { randomUUID } from 'node:crypto';
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectPostgres } from '../../../management/db/connect.ts';
import type { Database } from '../../../management/db/database.ts';
import { MIGRATIONS, migrate } from '../../../management/db/migrate.ts';
import {
  completeLink,
  insertLink,
  revokeLink,
  takeMail,
} from '../../../management/handover/links.repository.ts';
import {
  countFreePorts,
  fitPool,
  holdPorts,
  leasePorts,
  releasePorts,
} from '../../../management/ports/ports.repository.ts';
import { prepare } from '../../../management/prepare.ts';
import {
  addVerification,
  listVerifications,
} from '../../../management/verification/verification.repository.ts';
import { describeWith } from '../../support/components.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';

const CLIENT = '7c9e6679-7425-40de-944b-e07fc1f90a01';
const POOL = { host: 'tag-1', ports: { first: 20000, last: 20005 } };

const raise = (error: Error) => {
  throw error;
};

describeWith('postgresql', 'the database of management', () => {
  let postgresql: PostgresqlFixture;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
  });
  afterAll(() => postgresql?.stop());

  /** A client with a container, as rows of the oldest schema. */
  async function fill(db: Database, container = '3f0a6679-7425-40de-944b-e07fc1f90001', site = 'a') {
    await sql`insert into clients (id, name) values (${CLIENT}, 'Acme') on conflict do nothing`.execute(db);
    await sql`insert into containers (id, site_id, client_id, status, manifest)
      values (${container}, ${site}, ${CLIENT}, 'active', '{"site":"a"}')`.execute(db);
    return container;
  }

  describe('the role of the API', () => {
    let db: Database;
    let owner: Database;
    let container: string;
    beforeAll(async () => {
      ({ db, owner } = await postgresql.connections());
      await prepare(db, owner, POOL);
      container = await fill(owner);
    });
    afterAll(async () => {
      await db?.destroy();
      await owner?.destroy();
    });
    beforeEach(() => sql`update port_pool set leased_by = null`.execute(owner));

    test('takes at most ten mails of one client in a day, however many processes look for them', async () => {
      const now = new Date('2026-01-02T03:04:05Z');
      const add = async (at: Date) => {
        const { id } = await insertLink(owner, {
          ...{ id: randomUUID(), hash: randomUUID(), client_id: CLIENT, container_id: container },
          ...{ recipients: ['dns@acme.example'], created_by: 'ada', created_at: at, expires_at: at },
        });
        await completeLink(owner, id, at);
      };
      for (let n = 0; n < 30; n += 1) await add(now);
      const take = (at: Date) => Promise.all(Array.from({ length: 30 }, () => takeMail(db, at)));
      const taken = (await take(now)).filter((link) => link !== undefined);
      expect(new Set(taken.map(({ id }) => id)).size).toBe(10);
      // What is sent counts also after the link is revoked.
      for (const { id } of taken) await revokeLink(db, id, now);
      expect((await take(now)).filter((link) => link !== undefined)).toEqual([]);
      const later = new Date(now.getTime() + 86_400_001);
      expect((await take(later)).filter((link) => link !== undefined)).toHaveLength(10);
    });

    test.each([
      'select * from port_pool',
      "insert into port_pool (host, processing, preview) values ('tag-1', 30000, 30001)",
      'update port_pool set leased_by = null',
      'delete from port_pool',
      'truncate port_pool',
      'drop table port_pool',
      'drop function lease_ports',
      'create or replace function count_free_ports() returns integer language sql as $$ select 1 $$',
      'delete from containers',
      'delete from clients',
      'update container_counts set containers = 0',
      'delete from container_events',
      "update container_events set actor = 'another'",
      'delete from audit_log',
      "update audit_log set actor = 'another'",
      "update verifications set status = 'passed'",
      'update domain_claims set container_id = gen_random_uuid()',
      'create table public.mine (id integer)',
    ])('may not: %s', async (statement) => {
      await expect(sql.raw(statement).execute(db)).rejects.toMatchObject({ code: '42501' });
    });

    test('leases and holds ports through the functions, in the transaction that calls them', async () => {
      const rolledBack = db.transaction().execute(async (trx) => {
        expect(await leasePorts(trx, 'tag-1', container)).toEqual({ processing: 20000, preview: 20001 });
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      expect(await countFreePorts(db)).toBe(3);
      expect(await holdPorts(db, 'tag-1', container, { processing: 20002, preview: 20003 })).toBe(true);
      expect(await countFreePorts(db)).toBe(2);
    });

    test('can’t replace the pool by a table of the same name', async () => {
      await db.connection().execute(async (session) => {
        await sql`create temporary table port_pool (host text, processing integer, preview integer,
          leased_by uuid)`.execute(session);
        await sql`insert into port_pool values ('tag-1', 1, 2, null)`.execute(session);
        expect(await leasePorts(session, 'tag-1', container)).toMatchObject({ processing: 20000 });
        await sql`drop table pg_temp.port_pool`.execute(session);
      });
    });

    test('keeps the last ten verifications of a container, and those of others', async () => {
      const other = await fill(owner, '3f0a6679-7425-40de-944b-e07fc1f90009', 'i');
      const report = { status: 'passed' as const, checkedAt: '2026-11-21T12:00:00.000Z', checks: [] };
      await addVerification(db, other, report);
      for (let run = 0; run < 12; run += 1) {
        await addVerification(db, container, { ...report, checkedAt: `2026-11-21T12:00:${10 + run}.000Z` });
      }
      const kept = await listVerifications(db, container);
      expect([kept.length, kept[0]?.checkedAt, kept.at(-1)?.checkedAt]).toEqual([
        10,
        '2026-11-21T12:00:21.000Z',
        '2026-11-21T12:00:12.000Z',
      ]);
      expect(await listVerifications(db, other)).toEqual([report]);
    });

    test('gets one pair for each container, and can’t release a pair in use', async () => {
      await leasePorts(db, 'tag-1', container);
      expect(await leasePorts(db, 'tag-1', container)).toBeNull();
      await expect(releasePorts(db, container)).rejects.toThrow(/still has its ports in use/);
      await sql`update containers set status = 'removed' where id = ${container}`.execute(owner);
      await releasePorts(db, container);
      expect(await countFreePorts(db)).toBe(3);
      await sql`update containers set status = 'active' where id = ${container}`.execute(owner);
    });

    test('is refused at start where it owns the pool itself', async () => {
      const url = await postgresql.database();
      const one = connectPostgres(url.owner, raise);
      const two = connectPostgres(url.owner, raise);
      await expect(prepare(one, two, POOL)).rejects.toThrow(/can access the port pool/);
      await Promise.all([one.destroy(), two.destroy()]);
    });
  });

  describe('its migrations', () => {
    const names = Object.keys(MIGRATIONS) as (keyof typeof MIGRATIONS)[]; // Object.keys forgets the key type

    /** The schema of a database as text that is equal for equal schemas. */
    async function shape(db: Database): Promise<unknown> {
      const parts = await Promise.all([
        sql`select table_name, column_name, data_type, is_nullable, column_default, ordinal_position
          from information_schema.columns where table_schema = 'public' order by 1, 2`.execute(db),
        sql`select conrelid::regclass::text as relation, pg_get_constraintdef(oid) as definition
          from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`.execute(db),
        sql`select indexdef from pg_indexes where schemaname = 'public' order by 1`.execute(db),
        sql`select pg_get_functiondef(oid) as definition, proacl::text as rights from pg_proc
          where pronamespace = 'public'::regnamespace order by 1`.execute(db),
      ]);
      return parts.map(({ rows }) => rows);
    }

    test('are all on the list, in order', () => {
      const folder = fileURLToPath(new URL('../../../management/db/migrations/', import.meta.url));
      const files = globSync('*.ts', { cwd: folder }).map((path) => basename(path));
      expect(files.sort()).toEqual(names.map((name) => `${name}.ts`));
    });

    test.each(names)(
      'bring a database of version “%s”, with rows, to the schema that an empty database gets',
      async (version) => {
        const [fresh, grown] = await Promise.all(
          [0, 1].map(async () => connectPostgres((await postgresql.database()).owner, raise)),
        );
        if (fresh === undefined || grown === undefined) throw new Error('two databases were asked for');
        await migrate(fresh);
        await migrate(grown, version);
        const container = await fill(grown);
        await fitPool(grown, POOL.host, POOL.ports);
        await sql`update port_pool set leased_by = ${container} where processing = 20002`.execute(grown);
        await sql`insert into operations (id, container_id, kind, step, actor, request_id)
        values (gen_random_uuid(), ${container}, 'provision', ${version < '0005' ? 'record' : 'provision'}, '{}', 'r')`.execute(
          grown,
        );
        await migrate(grown);
        await migrate(grown);
        expect(await shape(grown)).toEqual(await shape(fresh));
        const rows = await grown.selectFrom('containers').select(['id', 'health', 'status']).execute();
        expect(rows).toEqual([{ id: container, health: 'unknown', status: 'active' }]);
        expect(await grown.selectFrom('operations').select('step').execute()).toEqual([
          { step: 'provision' },
        ]);
        expect(await countFreePorts(grown)).toBe(2);
        await Promise.all([fresh.destroy(), grown.destroy()]);
      },
    );
  });

  describe('its constraints', () => {
    let db: Database;
    beforeAll(async () => {
      ({ db } = await owned());
      await migrate(db);
      await fitPool(db, POOL.host, POOL.ports);
      await fill(db);
      await fill(db, '3f0a6679-7425-40de-944b-e07fc1f90002', 'b');
      await sql`insert into domain_claims values ('a.example', '3f0a6679-7425-40de-944b-e07fc1f90001')`.execute(
        db,
      );
      await sql`insert into operations (id, container_id, kind, step, actor, request_id)
        values (gen_random_uuid(), '3f0a6679-7425-40de-944b-e07fc1f90001', 'provision', 'commit', '{}', 'r')`.execute(
        db,
      );
    });
    afterAll(() => db?.destroy());

    async function owned() {
      const { owner } = await postgresql.database();
      return { db: connectPostgres(owner, raise) };
    }

    const [one, two] = ['3f0a6679-7425-40de-944b-e07fc1f90001', '3f0a6679-7425-40de-944b-e07fc1f90002'];
    test.each([
      ['a domain held twice', `insert into domain_claims values ('a.example', '${two}')`, '23505'],
      [
        'a second operation while one runs',
        `insert into operations (id, container_id, kind, step, actor, request_id)
          values (gen_random_uuid(), '${one}', 'deprovision', 'clean', '{}', 'r')`,
        '23505',
      ],
      ['a step that isn’t one', `update operations set step = 'dance'`, '23514'],
      ['a secret kept past its use', `update operations set status = 'failed', manifest = '{}'`, '23514'],
      ['a status that isn’t one', `update containers set status = 'sleeping'`, '23514'],
      [
        'a verdict that isn’t one',
        `insert into verifications (container_id, status, checked_at, checks) values ('${one}', 'odd', now(), '[]')`,
        '23514',
      ],
      ['a health that isn’t one', `update containers set health = 'so-so'`, '23514'],
      ['a site id used twice', `update containers set site_id = 'a'`, '23505'],
      ['a port pair twice', `insert into port_pool values ('tag-1', 20000, 29999)`, '23505'],
      ['a preview port twice', `insert into port_pool values ('tag-1', 29998, 20001)`, '23505'],
      ['one port for both', `insert into port_pool values ('tag-1', 29998, 29998)`, '23514'],
      ['a lease without a container', `update port_pool set leased_by = gen_random_uuid()`, '23503'],
      [
        'a domain served without a claim',
        `insert into site_domains values ('z.example', 'custom', 'a', null, null, true)`,
        '23503',
      ],
      ['a client that is removed before its containers', 'delete from clients', '23503'],
    ])('refuse %s', async (_what, statement, code) => {
      await expect(sql.raw(statement).execute(db)).rejects.toMatchObject({ code });
    });
  });
});
