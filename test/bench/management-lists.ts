import { sql } from 'kysely';
import { countContainers, listSummaries } from '../../management/records/container-lists.repository.ts';
import { findContainerFor } from '../../management/records/containers.repository.ts';
import { eventually } from '../support/eventually.ts';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { creation, World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';
import { latenciesOf } from './management-client.ts';

const CONTAINERS = 100_000;
const CLIENTS = 300;
const MEMBERS = 5_000;
const TIMES = 60;

/** Parts of names: some are in many containers, some in few, some in none. */
const SEARCHES = ['sho', 'erl', 'mun', 'x17', '999', 'qqq', 'ber', '.ex'];
const SORTS = ['-createdAt', 'name', '-updatedAt', 'status'];
/** A member of all clients (by their organisation), and a member of one. */
const CALLERS = ['agency', 'member-7'];

/** Searching and sorting lists of a hundred thousand containers on PostgreSQL. */
export const managementLists: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  const { db, owner } = await postgresql.connections();
  const world = await World.open({ db, owner, settings: { followMs: 500 }, logLevel: 'silent' });
  try {
    const id = await fill(world);
    await requests(bench, world, id);
    await queries(bench, world, id);
  } finally {
    await world.close();
    await postgresql.stop();
  }
};

/** Clients of one organisation, with members, and with copies of one container that the API created. */
async function fill(world: World): Promise<string> {
  const { owner } = world;
  const client = await world.client();
  const { body } = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  await eventually(async () => {
    const seen = await world.call('GET', `/server-containers/${body.id}`, { as: 'owner' });
    if (seen.body.status !== 'active') throw new Error(`the container is ${seen.body.status}`);
  });
  await world.stop();
  const run = (statement: ReturnType<typeof sql>) => statement.execute(owner);
  await run(sql`insert into organisations (id, name) values (gen_random_uuid(), 'Agency')`);
  await run(sql`insert into organisation_memberships select id, 'agency', 'admin' from organisations`);
  await run(sql`insert into clients (id, name, organisation_id)
    select gen_random_uuid(), 'Client ' || n, organisations.id
    from generate_series(1, ${CLIENTS}::integer) as n, organisations`);
  await run(sql`insert into client_memberships
    select clients.id, 'member-' || n, 'viewer' from generate_series(1, ${MEMBERS}::integer) as n
    join (select id, row_number() over (order by id) - 1 as place from clients where name like 'Client %') as clients
      on clients.place = n % ${CLIENTS}::integer`);
  await run(sql`insert into containers (id, site_id, client_id, status, health, manifest, revision, updated_at)
    select gen_random_uuid(), 'filled-' || n, clients.id,
      (array['active', 'verified', 'verification_failed', 'removed'])[1 + n % 4],
      (array['healthy', 'healthy', 'degraded'])[1 + n % 3],
      source.manifest || jsonb_build_object(
        'name', (array['Shop', 'Store', 'Berlin', 'München', 'Werkstatt'])[1 + n % 5] || ' ' || md5(n::text),
        'domains', jsonb_build_array(source.manifest->'domains'->0 ||
          jsonb_build_object('domain', 'site-' || n || '.example')),
        'hostnames', jsonb_build_object('edge', 'filled-' || n || '.edge.example.net',
          'origin', 'filled-' || n || '-origin.origin.example.net',
          'preview', 'filled-' || n || '-preview.origin.example.net')),
      source.revision, now() - make_interval(secs => n)
    from generate_series(1, ${CONTAINERS}::integer) as n
    join (select id, row_number() over (order by id) - 1 as place from clients where name like 'Client %') as clients
      on clients.place = n % ${CLIENTS}::integer,
    lateral (select manifest, revision from containers where id = ${body.id}::uuid) as source`);
  await run(sql`insert into operations (id, container_id, kind, status, step, actor, request_id)
    select gen_random_uuid(), id, 'provision', 'succeeded', 'follow', '{}', 'bench'
    from containers where site_id like 'filled-%'`);
  await run(sql`vacuum analyze`);
  await world.start({ follow: false });
  const { id } = await owner
    .selectFrom('containers')
    .select('id')
    .where('site_id', '=', 'filled-50007')
    .executeTakeFirstOrThrow();
  return id;
}

async function requests(bench: Bench, world: World, id: string): Promise<void> {
  const address = await world.listen();
  for (const caller of CALLERS) {
    const authorization = `Bearer ${await world.issuer.token(caller)}`;
    const seen = caller === 'agency' ? id : await visibleTo(world, caller);
    const lists = SEARCHES.flatMap((q) =>
      SORTS.map((sort) => `?view=summary&limit=50&q=${encodeURIComponent(q)}&sort=${sort}`),
    );
    const urls = [`/${seen}`, '/summary', ...lists].map((rest) => `${address}/server-containers${rest}`);
    await latenciesOf({ urls, authorization, count: 20 });
    const [one = [], summary = [], ...others] = await latenciesOf({ urls, authorization, count: TIMES });
    await bench(`search of 100,000 by ${caller}: p99 over all searches, against GET of one`, {
      unit: '×',
      run: () => percentile(others.flat(), 0.99) / percentile(one, 0.99),
    });
    const worst = others.map((times) => percentile(times, 0.5));
    await bench('  slowest search by its median, against GET of one', {
      unit: '×',
      run: () => Math.max(...worst) / percentile(one, 0.5),
    });
    await bench('  counts: p99', { unit: 'ms', run: () => percentile(summary, 0.99) });
  }
}

/** The queries alone, one at a time. */
async function queries(bench: Bench, { db }: World, id: string): Promise<void> {
  const caller = { subject: 'agency' };
  const one = await timesOf(() => findContainerFor(db, id, caller.subject));
  const searches: number[] = [];
  for (const q of SEARCHES) {
    for (const sort of SORTS) {
      const isDescending = sort.startsWith('-');
      const key = (isDescending ? sort.slice(1) : sort) as 'name';
      const query = { caller, q, order: { key, isDescending }, after: null, limit: 51 };
      const times = await timesOf(() => listSummaries(db, query));
      searches.push(...times);
    }
  }
  await bench('query of a search, against that of GET of one: median', {
    unit: '×',
    run: () => percentile(searches, 0.5) / percentile(one, 0.5),
  });
  await bench('  p99', { unit: '×', run: () => percentile(searches, 0.99) / percentile(one, 0.99) });
  const counts = await timesOf(() => countContainers(db, { caller }));
  await bench('query of the counts: p99', { unit: 'ms', run: () => percentile(counts, 0.99) });
}

async function visibleTo({ owner }: World, subject: string): Promise<string> {
  const { id } = await owner
    .selectFrom('containers')
    .innerJoin('client_memberships as member', 'member.client_id', 'containers.client_id')
    .select('containers.id')
    .where('member.subject', '=', subject)
    .limit(1)
    .executeTakeFirstOrThrow();
  return id;
}

async function timesOf(run: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < 120; index += 1) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return times.slice(20);
}

function percentile(times: readonly number[], fraction: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * fraction) - 1] ?? Number.NaN;
}
