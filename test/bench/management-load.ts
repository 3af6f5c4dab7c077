import { Agent, get } from 'node:http';
import { eventually } from '../support/eventually.ts';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { ManagementProcesses, MUTATIONS } from '../support/management/processes.ts';
import { VerifierFixture } from '../support/management/verifier.ts';
import { creation, World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';

const PROCESSES = 3;
const MIXED = 1_000;
/** The number of concurrent mutations. */
const AT_ONCE = 30;
const STREAMS = 400;
const CHANGES = 100;

/** Management under load: several processes on one database, and many event streams. */
export const managementLoad: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  try {
    await mixed(bench, postgresql);
    await streams(bench, postgresql);
  } finally {
    await postgresql.stop();
  }
};

async function open(postgresql: PostgresqlFixture) {
  const { urls, db, owner } = await postgresql.connections();
  const settings = { followMs: 500, watchMs: 5_000 };
  const world = await World.open({ db, owner, settings, logLevel: 'silent' });
  return { world, urls, client: await world.client() };
}

async function mixed(bench: Bench, postgresql: PostgresqlFixture): Promise<void> {
  const { world, urls, client } = await open(postgresql);
  const targets: { id: string; domain: string }[] = [];
  for (let index = 0; index < 5; index += 1)
    targets.push(await created(world, client, `mixed${index}.example`));
  await world.stop();
  const verifier = new VerifierFixture();
  await verifier.start();
  const processes = await ManagementProcesses.start(PROCESSES, { world, urls, verifier: verifier.url });
  const mutations = Object.values(MUTATIONS);
  let failed = 0;
  let next = 0;
  const send = async () => {
    for (let index = next++; index < MIXED; index = next++) {
      const target = targets[index % targets.length];
      const mutation = mutations[Math.floor(index / targets.length) % mutations.length];
      if (target === undefined || mutation === undefined) return;
      const [method, path, body] = mutation(target, index);
      const call = { as: 'owner', ...(body === undefined ? {} : { body }) };
      const { status } = await processes.call(index, method, `/server-containers/${target.id}${path}`, call);
      if (status >= 500) failed += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  const deadlocks = await processes.stop();
  await bench(`deadlocks in ${MIXED} mixed mutations by ${PROCESSES} processes`, {
    unit: '',
    run: () => deadlocks,
  });
  await bench('  answered with 5xx', { unit: '', run: () => failed });
  await verifier.stop();
  await world.close();
}

async function streams(bench: Bench, postgresql: PostgresqlFixture): Promise<void> {
  const { world, client } = await open(postgresql);
  const { id } = await created(world, client, 'streams.example');
  const url = await world.management?.app.listen({ host: '127.0.0.1', port: 0 });
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const quiet = await changes(world, id);
  const agent = new Agent({ keepAlive: true });
  let opened = 0;
  for (let index = 0; index < STREAMS; index += 1) {
    const headers = { authorization, accept: 'text/event-stream' };
    get(`${url}/server-containers/${id}/events`, { headers, agent }, (answer) => {
      answer.once('data', () => {
        opened += 1;
      });
      answer.resume().on('error', () => undefined);
    }).on('error', () => undefined);
  }
  await eventually(() => {
    if (opened < STREAMS) throw new Error(`${opened} streams are open`);
  });
  const busy = await changes(world, id);
  await bench(`PATCH beside ${STREAMS} event streams: p99, relative to that without streams`, {
    unit: '×',
    run: () => p99(busy) / p99(quiet),
  });
  agent.destroy();
  await world.close();
}

async function changes(world: World, id: string): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < CHANGES; index += 1) {
    const start = performance.now();
    const body = { name: `Change ${index}` };
    const { status } = await world.call('PATCH', `/server-containers/${id}`, { as: 'owner', body });
    if (status !== 200) throw new Error(`a change was answered with ${status}`);
    times.push(performance.now() - start);
  }
  return times;
}

function p99(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
}

async function created(world: World, client: string, domain: string) {
  const body = creation(client, domain, { name: domain });
  const made = await world.call('POST', '/server-containers', { as: 'owner', body });
  await eventually(async () => {
    const seen = await world.call('GET', `/server-containers/${made.body.id}`, { as: 'owner' });
    if (seen.body.status !== 'active') throw new Error(`the container is ${seen.body.status}`);
  });
  return { id: String(made.body.id), domain };
}
