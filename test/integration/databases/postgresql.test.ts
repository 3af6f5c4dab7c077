import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres } from '../../../management/db/connect.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { describeWith, testWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { AUDIENCE, ISSUER } from '../../support/management/issuer.ts';
import { listen } from '../../support/management/listen.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { RouteCalls } from '../../support/management/route-calls.ts';
import { type Answer, creation, SECRET, World } from '../../support/management/world.ts';

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

  /** Two processes' APIs on one database and one sites repository, with these quotas. */
  async function openTwo(quotas: Partial<World['settings']['quotas']>) {
    const { db, owner, urls } = await postgresql.connections();
    const usual = { containers: null, members: 1_000, tokens: 1_000 };
    const settings = {
      quotas: { ...usual, clientsPerOrganisation: 1_000, clientsPerPerson: 1_000, ...quotas },
    };
    const first = await World.open({ db, owner, settings, logLevel: 'silent' });
    const second = await World.open({
      db: connectPostgres(urls.api, raise),
      owner: connectPostgres(urls.owner, raise),
      bare: first.bare,
      tokens: { jwksUrl: first.issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE },
      settings,
      logLevel: 'silent',
    });
    /** Sends the requests at once, half of them to each. Resolves to the number of each status and code. */
    const burst = async (
      requests: readonly [method: 'POST', path: string, body: unknown][],
      as = 'owner',
    ) => {
      const token = await first.issuer.token(as);
      const answers = await Promise.all(
        requests.map(([method, path, body], index) =>
          (index % 2 === 0 ? first : second).call(method, path, { token, body }),
        ),
      );
      const kinds = answers.map(({ status, body }) => (status < 300 ? 'done' : (body?.code ?? status)));
      return Object.fromEntries([...Map.groupBy(kinds, String)].map(([kind, all]) => [kind, all.length]));
    };
    const close = async () => {
      await second.close();
      await first.close();
    };
    return { world: first, burst, close };
  }
  const times = <Item>(many: number, make: (index: number) => Item) =>
    Array.from({ length: many }, (_, index) => make(index));

  test('no burst of requests passes a limit of tokens, webhooks, invitations, links or deliveries', async () => {
    const { world, burst, close } = await openTwo({ tokens: 5 });
    try {
      const client = await world.client();
      expect(
        await burst(times(30, (n) => ['POST', '/tokens', { name: `t${n}`, client, scopes: ['viewer'] }])),
      ).toEqual({ done: 5, limit_reached: 25 });
      const url = 'http://127.0.0.1:9/';
      expect(await burst(times(40, () => ['POST', '/webhooks', { client, url }]))).toEqual({
        done: 20,
        too_many_webhooks: 20,
      });
      expect(
        await burst(times(130, () => ['POST', `/clients/${client}/invitations`, { role: 'viewer' }])),
      ).toEqual({ done: 100, limit_reached: 30 });
      expect(
        await burst(times(130, () => ['POST', `/clients/${client}/handover-links`, { recipients: [] }])),
      ).toEqual({ done: 100, limit_reached: 30 });
      const { id } = await world.owner.selectFrom('webhooks').select('id').executeTakeFirstOrThrow();
      await sql`insert into webhook_deliveries (webhook_id, queue, position, kind)
        select ${id}, ${id}, n, 'test' from generate_series(1, 995) as n`.execute(world.owner);
      expect(await burst(times(30, () => ['POST', `/webhooks/${id}/test`, undefined]))).toEqual({
        done: 5,
        limit_reached: 25,
      });
    } finally {
      await close();
    }
  });

  test('no burst of creations, restorations and transfers gives a client more containers than it may have', async () => {
    const { world, burst, close } = await openTwo({ containers: 2 });
    try {
      const [client, other] = [await world.client(), await world.client('Other')];
      const creations = (of: string, many: number) =>
        times(many, (n): ['POST', string, unknown] => [
          'POST',
          '/server-containers',
          creation(of, `${of.slice(0, 8)}-${n}.example`, { name: `Site ${of.slice(0, 8)} ${n}` }),
        ]);
      expect(await burst(creations(client, 10))).toEqual({ done: 2, limit_reached: 8 });
      expect(await burst(creations(other, 2))).toEqual({ done: 2 });
      const idsOf = async (of: string) =>
        (
          await world.call('GET', `/server-containers?client=${of}&limit=10`, { as: 'owner' })
        ).body.containers.map(({ id }: { id: string }) => id);
      const own: string[] = await idsOf(client);
      for (const id of own) {
        await eventually(async () => {
          const removed = await world.call('DELETE', `/server-containers/${id}`, { as: 'owner' });
          expect(removed.status).toBe(202);
        });
        await eventually(async () => {
          const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
          expect(body.status).toBe('removed');
        });
      }
      const theirs: string[] = await idsOf(other);
      await eventually(async () => {
        for (const id of theirs) {
          const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
          expect(body.status).toBe('active');
        }
      });
      await burst([
        ...own.map((id): ['POST', string, unknown] => [
          'POST',
          `/server-containers/${id}/restore`,
          undefined,
        ]),
        ...theirs.map((id): ['POST', string, unknown] => [
          'POST',
          `/clients/${other}/transfer`,
          { containers: [id], to: client },
        ]),
      ]);
      const { count } = await world.owner
        .selectFrom('containers')
        .select(({ fn }) => fn.countAll<string>().as('count'))
        .where('client_id', '=', client)
        .where('status', '<>', 'removed')
        .executeTakeFirstOrThrow();
      expect(Number(count)).toBe(2);
    } finally {
      await close();
    }
  });

  test('no burst of creations gives an organisation or a person more clients than allowed', async () => {
    const { world, burst, close } = await openTwo({ clientsPerOrganisation: 3, clientsPerPerson: 4 });
    try {
      const member = (subject: string) => ({ subject, role: 'owner' });
      const made = await world.call('POST', '/organisations', {
        as: 'root',
        body: { name: 'Agency', members: [member('owner')] },
      });
      const organisation = made.body.id;
      expect(
        await burst(
          times(10, (n) => ['POST', '/clients', { name: `C${n}`, organisation, members: [member(`m${n}`)] }]),
        ),
      ).toEqual({ done: 3, limit_reached: 7 });
      expect(
        await burst(
          times(10, (n) => ['POST', '/clients', { name: `P${n}`, members: [member('somebody')] }]),
          'root',
        ),
      ).toEqual({ done: 4, limit_reached: 6 });
    } finally {
      await close();
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
      await eventually(async () => expect((await world.call('GET', '/readyz')).status).toBe(200));
      await postgresql.without(async () => {
        const { status, body } = await world.call('GET', '/readyz');
        expect([status, body]).toEqual([
          503,
          {
            ...{ service: 'management', status: 'not_ready', database: false },
            ...{ sitesRepo: true, sitesRepoSeconds: expect.any(Number), findings: [] },
          },
        ]);
        expect((await world.call('GET', '/healthz')).status).toBe(200);
        const asked = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
        expect([asked.status, asked.body.code]).toEqual([503, 'database_unavailable']);
        expect(JSON.stringify(asked.body)).not.toMatch(/ECONNREFUSED|127\.0\.0\.1|postgres/i);
      });
      expect((await world.call('GET', '/readyz')).status).toBe(200);
      await becomesActive((await create('after.example')).id);
      expect(broken.length).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  });

  test('every route says that the database is away, and when to try again', async () => {
    const { db, owner } = await postgresql.connections(() => undefined);
    const world = await World.open({ db, owner });
    try {
      const calls = await RouteCalls.open(world);
      const token = (
        await world.call('POST', '/tokens', {
          as: 'root',
          body: { name: 'x', client: await world.client(), scopes: ['viewer'] },
        })
      ).body.token;
      const asked: Record<string, () => Promise<Answer>> = {
        metrics: () => world.call('GET', '/metrics'),
        'handover page': () => world.call('GET', `/handover/tgh_${'a'.repeat(43)}`),
        'a service token': () => world.call('GET', '/server-containers', { token }),
      };
      for (const route of world.management?.routes ?? []) {
        for (const as of ['root', 'owner']) {
          const key = { 'idempotency-key': `${route.operation}-${as}` };
          asked[`${route.operation} of ${as}`] = await calls.prepared(route, as, key);
        }
      }
      await postgresql.without(async () => {
        const answers: (string | number | undefined)[][] = [];
        for (const [name, ask] of Object.entries(asked)) {
          const { status, headers, body } = await ask();
          answers.push([name, status, body?.code, Number(headers['retry-after'])]);
          expect(JSON.stringify(body), name).not.toMatch(/ECONNREFUSED|127\.0\.0\.1|postgres/i);
        }
        const isAway = ([, status, code, seconds]: (typeof answers)[number]) =>
          status === 503 && code === 'database_unavailable' && Number(seconds) > 0;
        // What needs no database is answered, or refused as ever.
        const others = answers.filter((one) => !isAway(one));
        expect(others.filter(([, status, code]) => Number(status) >= 500 && code !== 'no_login')).toEqual([]);
        expect(answers.filter(isAway).length).toBeGreaterThan(answers.length * 0.8);
      });
    } finally {
      await world.close();
    }
  });

  test('projects git again into an older copy of the database that replaces it', async () => {
    const { urls, db, owner } = await postgresql.connections(() => undefined);
    const world = await World.open({ db, owner });
    const shown = async (path: string) => (await world.call('GET', path, { as: 'owner' })).body;
    const create = async (client: string, domain: string) => {
      const body = creation(client, domain, { name: domain });
      const { id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
      await eventually(async () =>
        expect(await shown(`/server-containers/${id}`)).toMatchObject({ status: 'active' }),
      );
      return id;
    };
    try {
      const kept = await create(await world.client(), 'kept.example');
      const copy = await postgresql.backUp(urls);
      await world.call('PATCH', `/server-containers/${kept}`, { as: 'owner', body: { name: 'Renamed' } });
      const client = await world.client('Later');
      const later = await create(client, 'later.example');
      await postgresql.restore(urls, copy);
      await eventually(async () => {
        expect(await shown(`/clients/${client}`)).toMatchObject({ name: 'Later' });
        expect(await shown(`/server-containers/${kept}`)).toMatchObject({ name: 'Renamed' });
        expect(await shown(`/server-containers/${later}`)).toMatchObject({ status: 'active' });
      });
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

  test('a process that starts while the database is away waits for it, unless a person must act', async () => {
    const { owner, api } = await postgresql.database();
    const dir = await mkdtemp(join(tmpdir(), 'tagyard-waits-'));
    await initSitesRepo(join(dir, 'sites.git'));
    const recipient = await identityToRecipient(await generateIdentity());
    const children: ChildProcess[] = [];
    const start = (urls: { DATABASE_URL: string; PORT_POOL_DATABASE_URL?: string }) => {
      const child = fork(new URL('../../../management/main.ts', import.meta.url), {
        silent: true,
        env: {
          ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
          ...{ MANAGEMENT_PORT: '0', STATE_DIR: join(dir, 'state'), SITES_REPO: join(dir, 'sites.git') },
          ...{ INFRA_PROVISIONER_URL: 'http://127.0.0.1:9', INFRA_SECRET: 'infra-s3cret' },
          ...{ AUTH_JWKS_URL: 'http://127.0.0.1:9/', AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE },
          AGE_RECIPIENT: recipient,
          ...{ EDGE_DOMAIN: 'edge.example.net', ORIGIN_DOMAIN: 'origin.example.net' },
          TAG_SERVER_IMAGE: `sha256:${'a'.repeat(64)}`,
          ...urls,
        },
      });
      children.push(child);
      const said = { errors: '' };
      child.stdout?.resume();
      child.stderr?.on('data', (chunk) => {
        said.errors += String(chunk);
      });
      return { child, said };
    };
    try {
      const urls = { DATABASE_URL: api, PORT_POOL_DATABASE_URL: owner };
      let waiting = start(urls);
      await once(waiting.child, 'message');
      waiting.child.kill('SIGKILL');
      await postgresql.without(async () => {
        waiting = start(urls);
        await eventually(() =>
          expect(waiting.said.errors).toMatch(/^management: waits for the database: .*ECONNREFUSED.*\n$/),
        );
      });
      const [message] = await once(waiting.child, 'message');
      expect(message).toMatchObject({ type: 'ready' });
      expect(waiting.said.errors).toMatch(/^(?:management: waits for the database: .*\n)+$/);

      const nowhere = start({ DATABASE_URL: `${owner}_nowhere` });
      expect(await once(nowhere.child, 'exit')).toEqual([1, null]);
      expect(nowhere.said.errors).toMatch(/^management: .*database "suite_\d+_nowhere" does not exist\n$/);
    } finally {
      for (const child of children) child.kill('SIGKILL');
      await rm(dir, { recursive: true });
    }
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
