import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fastify from 'fastify';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { sql } from 'kysely';
import { createAuthenticator } from '../../management/http/auth.ts';
import { findContainerFor } from '../../management/records/containers.repository.ts';
import { AUDIENCE, ISSUER } from '../support/management/issuer.ts';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { creation, World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';
import { latenciesOf } from './management-client.ts';
import { byHand, controlRepo } from './management-control.ts';

const CONTAINERS = 100_000;
const CREATIONS = 200;

/** Management on PostgreSQL. A control does only the bare work; it alternates with what it is compared with. */
export const management: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  const { db, owner } = await postgresql.connections();
  const world = await World.open({
    db,
    owner,
    ports: { first: 20000, last: 40000 },
    settings: { followMs: 500, watchMs: 5_000 },
    logLevel: 'silent',
  });
  try {
    const client = await world.client();
    await tokens(bench, world);
    await creations(bench, world, client);
    const id = await fill(world, client);
    await reads(bench, world, id);
    await heap(bench, world, id);
  } finally {
    await world.close();
    await postgresql.stop();
  }
};

async function tokens(bench: Bench, { issuer }: World): Promise<void> {
  const token = await issuer.token('owner');
  const options = { issuer: ISSUER, audience: AUDIENCE };
  const ours = createAuthenticator({ jwksUrl: issuer.jwksUrl, ...options });
  const keys = createRemoteJWKSet(new URL(issuer.jwksUrl));
  const check = () => ours(`Bearer ${token}`);
  const bare = () => jwtVerify(token, keys, options);
  await repeat(500, check);
  await repeat(500, bare);
  await bench('token check, against bare jose', {
    unit: '×',
    times: 5,
    run: () => alternately(2_000, check, bare),
  });
  await bench('  of tokens not seen before', {
    unit: '×',
    times: 5,
    run: async () => {
      const fresh: string[] = [];
      for (let index = 0; index < 500; index += 1) {
        fresh.push(await issuer.token('owner', { jti: randomUUID() }));
      }
      let [next, again] = [0, 0];
      const first = () => ours(`Bearer ${fresh[next++]}`);
      const control = () => jwtVerify(fresh[again++] ?? '', keys, options);
      return await alternately(fresh.length, first, control);
    },
  });
}

async function creations(bench: Bench, world: World, client: string): Promise<void> {
  const times: number[] = [];
  const control: number[] = [];
  const repo = await controlRepo(world);
  for (let index = 0; index < CREATIONS; index += 1) {
    const domain = `created-${index}.example`;
    const body = creation(client, domain, { name: domain });
    const headers = { as: 'owner', body };
    times.push(
      await milliseconds(async () => {
        const { status } = await world.call('POST', '/server-containers', headers);
        if (status !== 202) throw new Error(`the API answered a creation with ${status}`);
      }),
    );
    control.push(await milliseconds(() => byHand(world, repo, client, index)));
  }
  const slice = CREATIONS / 4;
  // Each time is divided by that of the control right after it, because the machine's other load changes within
  // seconds.
  const ratios = times.map((time, index) => time / (control[index] ?? Number.NaN));
  await bench('creation to its 202', { unit: 'ms', run: () => median(times) });
  await bench('  against one transaction and one commit', {
    unit: '×',
    run: () => median(times) / median(control),
  });
  await bench(`  ratio to control: last ${slice} of ${CREATIONS} against first`, {
    unit: '×',
    run: () => median(ratios.slice(-slice)) / median(ratios.slice(0, slice)),
  });
}

/** Adds a hundred thousand copies of a created container, and returns the id of one copy. */
async function fill({ owner }: World, client: string): Promise<string> {
  await sql`insert into containers (id, site_id, client_id, status, manifest, revision)
    select gen_random_uuid(), 'filled-' || n, ${client}, 'failed', source.manifest, source.revision
    from generate_series(1, ${CONTAINERS}::integer) as n,
      (select manifest, revision from containers where site_id like 'created-%' limit 1) as source`.execute(
    owner,
  );
  await sql`insert into operations (id, container_id, kind, status, step, actor, request_id)
    select gen_random_uuid(), id, 'provision', 'failed', 'withdraw', '{}', 'bench'
    from containers where site_id like 'filled-%'`.execute(owner);
  await sql`analyze`.execute(owner);
  const { id } = await owner
    .selectFrom('containers')
    .select('id')
    .where('site_id', '=', 'filled-50000')
    .executeTakeFirstOrThrow();
  return id;
}

async function reads(bench: Bench, world: World, id: string): Promise<void> {
  const bare = fastify();
  bare.get<{ Params: { id: string } }>('/:id', ({ params }) =>
    findContainerFor(world.db, params.id, 'owner'),
  );
  await bare.ready();
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const get = (url: string) => async () => {
    const answer = await world.management?.app.inject({ url, headers: { authorization } });
    if (answer?.statusCode !== 200) throw new Error(`${url} answered ${answer?.statusCode}`);
  };
  const one = get(`/server-containers/${id}`);
  const control = async () => void (await bare.inject({ url: `/${id}` }));
  await repeat(200, one);
  await repeat(200, control);
  await bench('GET of one container: requests/s, against bare', {
    unit: '×',
    times: 5,
    run: () => alternately(500, control, one),
  });
  await bare.close();
  await lists(bench, world, { id, authorization });
}

/** Over HTTP, as clients use it: `inject` copies an answer of 140 KB twice, and its garbage is half of the cost. */
async function lists(
  bench: Bench,
  { management }: World,
  { id, authorization }: { readonly id: string; readonly authorization: string },
): Promise<void> {
  const address = await management?.app.listen({ host: '127.0.0.1', port: 0 });
  const urls = ['?limit=50', `/${id}`].map((rest) => `${address}/server-containers${rest}`);
  await latenciesOf({ urls, authorization, count: 500 });
  await bench('list of 50 of 100,000: p99, against GET of one', {
    unit: '×',
    times: 5,
    run: async () => {
      const [list = [], one = []] = await latenciesOf({ urls, authorization, count: 1_000 });
      return percentile(list, 0.99) / percentile(one, 0.99);
    },
  });
}

async function heap(bench: Bench, world: World, id: string): Promise<void> {
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const request = async () => {
    await world.management?.app.inject({ url: `/server-containers/${id}`, headers: { authorization } });
  };
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const used = async (count: number) => {
    await repeat(count, request);
    collect();
    return process.memoryUsage().heapUsed;
  };
  const after1000 = await used(1_000);
  await bench('heap after 10,000 requests, against 1,000', {
    unit: '×',
    run: async () => (await used(9_000)) / after1000,
  });
}

/** Seconds that `count` runs take, one after another. */
async function repeat(count: number, run: () => Promise<unknown>): Promise<number> {
  const ms = await milliseconds(async () => {
    for (let index = 0; index < count; index += 1) await run();
  });
  return ms / 1_000;
}

/**
 * The time of `count` runs of `one`, divided by that of `other`. They alternate every ten runs, so that noise affects
 * both equally.
 */
async function alternately(
  count: number,
  one: () => Promise<unknown>,
  other: () => Promise<unknown>,
): Promise<number> {
  let [first, second] = [0, 0];
  for (let done = 0; done < count; done += 10) {
    first += await repeat(10, one);
    second += await repeat(10, other);
  }
  return first / second;
}

async function milliseconds(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

function percentile(times: readonly number[], fraction: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * fraction) - 1] ?? Number.NaN;
}

const median = (times: readonly number[]) => percentile(times, 0.5);
