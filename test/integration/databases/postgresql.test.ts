import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { identityToRecipient } from 'age-encryption';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres } from '../../../management/db/connect.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { describeWith, testWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { AUDIENCE, ISSUER } from '../../support/management/issuer.ts';
import { listen } from '../../support/management/listen.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { creation, SECRET, World } from '../../support/management/world.ts';

const raise = (error: Error) => {
  throw error;
};

describeWith('postgresql', 'management on PostgreSQL', () => {
  let postgresql: PostgresqlFixture;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
  });
  afterAll(() => postgresql?.stop());

  testWith(
    'pgbouncer',
    'streams events behind a pooler in transaction mode, and says that it delivers no notices',
    async () => {
      const { urls, db: direct, owner } = await postgresql.connections();
      await direct.destroy();
      await postgresql.pooled(urls, async (url) => {
        const said: string[] = [];
        const db = connectPostgres(url, (error) => said.push(error.message));
        const world = await World.open({ db, owner });
        try {
          await eventually(() => expect(said.join()).toContain('PgBouncer in transaction mode'), {
            timeoutMs: 20_000,
          });
          const client = await world.client();
          const at = await world.management?.app.listen({ host: '127.0.0.1', port: 0 });
          const stream = await listen(`${at}/events`, {
            authorization: `Bearer ${await world.issuer.token('owner')}`,
          });
          const body = creation(client, 'pooled.example');
          expect((await world.call('POST', '/server-containers', { as: 'owner', body })).status).toBe(202);
          await eventually(() => expect(stream.kinds()).toContain('status'), { timeoutMs: 20_000 });
          stream.stop.abort();
          await stream.reading;
          expect(said).toHaveLength(1);
        } finally {
          await world.close();
        }
      });
    },
  );

  test('gives each of 30 port pairs to one of 50 concurrent creations', async () => {
    const { db, owner } = await postgresql.connections();
    const world = await World.open({ db, owner, ports: { first: 20000, last: 20059 } });
    try {
      const client = await world.client();
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          world.call('POST', '/server-containers', {
            as: 'owner',
            body: creation(client, `s${index}.example`),
          }),
        ),
      );
      const accepted = answers.filter(({ status }) => status === 202);
      const refused = answers.filter(({ status }) => status !== 202);
      expect(accepted).toHaveLength(30);
      expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['no_free_port']));
      expect(new Set(accepted.map(({ body }) => body.siteId)).size).toBe(30);
      const leases = await owner.selectFrom('port_pool').select('leased_by').execute();
      expect(new Set(leases.map(({ leased_by }) => leased_by)).size).toBe(30);
      const head = (await world.repo.head()) ?? '';
      const ports = (await world.repo.read(head)).flatMap(({ text }) =>
        [...text.matchAll(/^ {2}(?:processing|preview): (\d+)$/gm)].map(([, port]) => port),
      );
      expect([ports.length, new Set(ports).size]).toEqual([60, 60]);
    } finally {
      await world.close();
    }
  });

  test('gives a contested domain to exactly one of many, and creates one container for one idempotency key', async () => {
    const { db, owner } = await postgresql.connections();
    const world = await World.open({ db, owner });
    try {
      const client = await world.client();
      const pages = (...domains: string[]) =>
        creation(client, '', {
          domains,
          webTagIds: Object.fromEntries(domains.map((domain) => [domain, 'GTM-ABC1234'])),
        });
      // Named in different orders: the claims must not deadlock.
      const rivals = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          world.call('POST', '/server-containers', {
            as: 'owner',
            body: index % 2 === 0 ? pages('a.example', 'b.example') : pages('b.example', 'a.example'),
          }),
        ),
      );
      expect(rivals.map(({ status }) => status).sort()).toEqual([202, ...Array(9).fill(409)]);

      const same = await Promise.all(
        Array.from({ length: 5 }, () =>
          world.call('POST', '/server-containers', {
            as: 'owner',
            body: pages('once.example'),
            headers: { 'idempotency-key': 'once' },
          }),
        ),
      );
      for (const { status, body } of same) {
        expect([status, body.code]).toBeOneOf([
          [202, undefined],
          [409, 'request_in_progress'],
        ]);
      }
      expect(new Set(same.flatMap(({ status, body }) => (status === 202 ? body.id : []))).size).toBe(1);
    } finally {
      await world.close();
    }
  });

  test('is not ready while PostgreSQL is down, reveals nothing internal, and continues when it is back', async () => {
    const broken: Error[] = [];
    const { db, owner } = await postgresql.connections((error) => broken.push(error));
    const world = await World.open({ db, owner });
    try {
      const client = await world.client();
      const create = async (domain: string) =>
        (await world.call('POST', '/server-containers', { as: 'owner', body: creation(client, domain) }))
          .body;
      const becomesActive = (id: string) =>
        eventually(async () => {
          const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
          expect(body.status).toBe('active');
        });
      const { id } = await create('before.example');
      await becomesActive(id);
      await postgresql.without(async () => {
        const { status, body } = await world.call('GET', '/readyz');
        expect([status, body]).toEqual([
          503,
          { service: 'management', status: 'not_ready', database: false, sitesRepo: true },
        ]);
        expect((await world.call('GET', '/healthz')).status).toBe(200);
        const asked = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
        expect([asked.status, asked.body.code]).toEqual([500, 'internal']);
        expect(JSON.stringify(asked.body)).not.toMatch(/ECONNREFUSED|127\.0\.0\.1|postgres/i);
      });
      expect((await world.call('GET', '/readyz')).status).toBe(200);
      await becomesActive((await create('after.example')).id);
      expect(broken.length).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  });

  test('survives a connection that breaks in the middle of a transaction', async () => {
    const { db, owner } = await postgresql.connections(() => undefined);
    try {
      const broken = owner.transaction().execute(async (trx) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
        await sql`select pg_terminate_backend(${rows[0]?.pid}, 30000)`.execute(owner);
        await sql`select 1`.execute(trx);
      });
      // An error event without a listener would end the process, and so this run.
      await expect(broken).rejects.toThrow(/terminat|connection error/i);
      expect((await sql`select 1 as one`.execute(owner)).rows).toEqual([{ one: 1 }]);
    } finally {
      await Promise.all([db.destroy(), owner.destroy()]);
    }
  });

  test('is migrated once by several processes at the same time', async () => {
    const { owner: url } = await postgresql.database();
    const connections = Array.from({ length: 4 }, () => connectPostgres(url, raise));
    await Promise.all(connections.map((db) => migrate(db)));
    const names = await connections[0]?.introspection.getTables();
    expect(names?.map(({ name }) => name)).toEqual(expect.arrayContaining(['containers', 'port_pool']));
    await Promise.all(connections.map((db) => db.destroy()));
  });

  test('finishes a creation after its process was killed in the middle and started again', async () => {
    const { urls, db, owner } = await postgresql.connections();
    const world = await World.open({ db, owner });
    const client = await world.client();
    await world.stop();
    const held = Promise.withResolvers<void>();
    world.provisioner.gate = held.promise;
    const env = {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      MANAGEMENT_PORT: '0',
      DATABASE_URL: urls.api,
      PORT_POOL_DATABASE_URL: urls.owner,
      STATE_DIR: join(world.dir, 'state'),
      SITES_REPO: world.bare,
      INFRA_PROVISIONER_URL: world.provisioner.url,
      INFRA_SECRET: SECRET,
      AUTH_JWKS_URL: world.issuer.jwksUrl,
      AUTH_ISSUER: ISSUER,
      AUTH_AUDIENCE: AUDIENCE,
      AGE_RECIPIENT: await identityToRecipient(world.identity),
      EDGE_DOMAIN: 'edge.example.net',
      ORIGIN_DOMAIN: 'origin.example.net',
      TAG_SERVER_IMAGE: `sha256:${'a'.repeat(64)}`,
    };
    const children: ChildProcess[] = [];
    const start = async () => {
      const child = fork(new URL('../../../management/main.ts', import.meta.url), { env, stdio: 'ignore' });
      children.push(child);
      const [message] = await once(child, 'message');
      return { child, url: String(message.url) };
    };
    const request = async (at: string, init: RequestInit = {}) =>
      await fetch(at, {
        ...init,
        headers: {
          authorization: `Bearer ${await world.issuer.token('owner')}`,
          'content-type': 'application/json',
          'idempotency-key': 'survivor',
        },
      });
    try {
      const first = await start();
      const body = JSON.stringify(creation(client));
      const lost = request(`${first.url}/server-containers`, { method: 'POST', body }).catch(() => null);
      await eventually(() =>
        expect(world.provisioner.calls).toContainEqual(expect.objectContaining({ path: '/provision' })),
      );
      first.child.kill('SIGKILL');
      expect(await lost).toBeNull();
      held.resolve();

      const second = await start();
      const made = await eventually(async () => {
        const answer = await request(`${second.url}/server-containers`, { method: 'POST', body });
        expect(answer.status).toBe(202);
        return (await answer.json()) as { id: string };
      });
      await eventually(async () => {
        const answer = await request(`${second.url}/server-containers/${made.id}`);
        expect(await answer.json()).toMatchObject({ status: 'active', siteId: 'acme-shop' });
      });
      expect(await world.leased()).toBe(1);
      expect(await world.repo.history('acme-shop')).toHaveLength(1);
    } finally {
      held.resolve();
      for (const child of children) child.kill('SIGKILL');
      await world.close();
    }
  });
});
