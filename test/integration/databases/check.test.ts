import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres } from '../../../management/db/connect.ts';
import { checkDatabase } from '../../../management/preflight.ts';
import { findingOf } from '../../support/checks/findings.ts';
import { describeWith } from '../../support/components.ts';
import { type DatabaseUrls, PostgresqlFixture } from '../../support/management/postgresql.ts';
import { silentServer } from '../../support/silent.ts';

const raise = (error: Error) => {
  throw error;
};

describeWith('postgresql', 'the check of the database', () => {
  let postgresql: PostgresqlFixture;
  let urls: DatabaseUrls;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
    urls = await postgresql.database();
  });
  afterAll(() => postgresql?.stop());

  const check = (api: string, owner?: string) =>
    checkDatabase({ DATABASE_URL: api, PORT_POOL_DATABASE_URL: owner });
  const run = async (statement: string) => {
    const db = connectPostgres(urls.owner, raise);
    await sql.raw(statement).execute(db);
    await db.destroy();
  };

  test('passes with a role that owns nothing and one that owns the schema, before there is one', async () => {
    const passed = { name: 'database', status: 'passed', fix: null };
    expect(await check(urls.api, urls.owner)).toMatchObject(passed);
    expect(await check(urls.owner)).toMatchObject(passed);
  });

  test('one role without rights is a finding until the owner’s URL is set', async () => {
    expect(findingOf(await check(urls.api), /^DATABASE_URL: api may not create the schema/)).toBe('owner');
    expect(await check(urls.api, urls.owner)).toMatchObject({ status: 'passed' });
  });

  test('roles in the wrong places are findings', async () => {
    expect(findingOf(await check(urls.owner, urls.owner), /^DATABASE_URL: \w+ is a superuser/)).toBe('api');
    expect(findingOf(await check(urls.api, urls.api), /^PORT_POOL_DATABASE_URL: api may not/)).toBe('owner');
  });

  test('an API’s role that may create tables is a finding until it may not', async () => {
    await run('grant create on schema public to api');
    expect(findingOf(await check(urls.api, urls.owner), /^DATABASE_URL: api may create tables/)).toBe('api');
    await run('revoke create on schema public from api');
    expect(await check(urls.api, urls.owner)).toMatchObject({ status: 'passed' });
  });

  test('two databases are a finding until both URLs name one', async () => {
    const { owner } = await postgresql.database();
    expect(findingOf(await check(urls.api, owner), /name different databases$/)).toBe('apart');
    expect(await check(urls.api, urls.owner)).toMatchObject({ status: 'passed' });
  });

  test('a server that is away, and an unknown role, are findings that name the setting', async () => {
    const { port, close } = await silentServer();
    await close();
    const away = `postgres://api@127.0.0.1:${port}/tagyard`;
    expect(findingOf(await check(away), /^DATABASE_URL: .*ECONNREFUSED/)).toBe('silent');
    const stranger = urls.owner.replace('tagyard@', 'stranger@');
    expect(findingOf(await check(urls.api, stranger), /^PORT_POOL_DATABASE_URL: .*stranger/)).toBe('silent');
    expect(await check(urls.api, urls.owner)).toMatchObject({ status: 'passed' });
  });
});
