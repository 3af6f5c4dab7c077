import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { sql } from 'kysely';
import { eventually } from '../support/eventually.ts';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { ManagementProcesses } from '../support/management/processes.ts';
import { Receiver } from '../support/management/receiver.ts';
import { creation, World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';

const STREAMS = 10_000;
/** Each subject may have a hundred streams. */
const SUBJECTS = 100;
const BACKLOG = 100_000;
const CONTAINERS = 1_000;

/** Open event streams in one process, and a backlog of webhooks during which the process is killed. */
export const managementFeeds: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  const { urls, db, owner } = await postgresql.connections();
  const world = await World.open({ db, owner, logLevel: 'silent' });
  try {
    const members = Array.from({ length: SUBJECTS }, (_, index) => ({ subject: `s${index}`, role: 'owner' }));
    const made = await world.call('POST', '/clients', { as: 'root', body: { name: 'Bench', members } });
    const client: string = made.body.id;
    await world.call('POST', '/server-containers', { as: 's0', body: creation(client) });
    await sql`insert into containers (id, site_id, client_id, status, manifest)
      select gen_random_uuid(), 'copy-' || n, client_id, 'failed', manifest
      from generate_series(2, ${CONTAINERS}::integer) as n, containers`.execute(owner);
    const start = async () => {
      await world.stop();
      return await ManagementProcesses.start(1, { world, urls });
    };
    await streams(bench, world, await start());
    await backlog(bench, { world, client, start });
  } finally {
    await world.close();
    await postgresql.stop();
  }
};

async function streams(bench: Bench, world: World, processes: ManagementProcesses): Promise<void> {
  const [{ url, pid } = { url: '', pid: 0 }] = processes.all();
  const before = residentMiB(pid);
  const tokens = await Promise.all(
    Array.from({ length: SUBJECTS }, (_, index) => world.issuer.token(`s${index}`)),
  );
  const readers = await Readers.open(url, tokens);
  await bench(`${STREAMS} open event streams: memory of the process`, {
    unit: 'MiB',
    run: () => residentMiB(pid),
  });
  await bench('  more than before', { unit: 'MiB', run: () => residentMiB(pid) - before });
  await bench('  a change reaches all', {
    unit: 'ms',
    times: 5,
    run: () =>
      readers.timeOf(async () => {
        await sql`insert into container_events (container_id, kind, status)
          select id, 'changed', 'active' from containers limit 1`.execute(world.owner);
      }),
  });
  readers.close();
  await processes.kill();
  const control = fork(new URL('management-feeds-control.ts', import.meta.url));
  const [{ url: plain }] = await once(control, 'message');
  const others = await Readers.open(plain, tokens);
  await bench('  for comparison: a message of a bare server reaches all', {
    unit: 'ms',
    times: 5,
    run: () => others.timeOf(async () => void control.send('write')),
  });
  others.close();
  control.kill();
}

/** Many readers of event streams, which count what they get. */
class Readers {
  readonly #sockets: Socket[] = [];
  #opened = 0;
  #arrived = 0;

  static async open(url: string, tokens: readonly string[]): Promise<Readers> {
    const readers = new Readers();
    for (let index = 0; index < STREAMS; index += 1) {
      readers.#add(url, tokens[index % tokens.length] ?? '');
      // A few at a time, because the queue of a listening socket is limited.
      if (index % 100 === 99) await eventually(() => readers.#demandOpen(index - 100));
    }
    await eventually(() => readers.#demandOpen(STREAMS), { timeoutMs: 60_000 });
    return readers;
  }

  /** Milliseconds from the start of `send` until all readers have an event. */
  async timeOf(send: () => Promise<void>): Promise<number> {
    this.#arrived = 0;
    const since = performance.now();
    await send();
    await eventually(
      () => demand(this.#arrived === STREAMS, `the event has reached ${this.#arrived} of ${STREAMS} readers`),
      {
        intervalMs: 5,
      },
    );
    return performance.now() - since;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #add(url: string, token: string): void {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      if (text.includes('retry: ')) this.#opened += 1;
      if (text.includes('event: changed')) this.#arrived += 1;
    });
    socket.write(
      `GET /events HTTP/1.1\r\nhost: api\r\naccept: text/event-stream\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    this.#sockets.push(socket);
  }

  #demandOpen(count: number): void {
    demand(this.#opened >= count, `${this.#opened} are open`);
  }
}

async function backlog(
  bench: Bench,
  { world, client, start }: { world: World; client: string; start: () => Promise<ManagementProcesses> },
): Promise<void> {
  const receiver = new Receiver();
  await receiver.start();
  await world.start();
  const body = { clientId: client, url: `${receiver.url}/` };
  await world.call('POST', '/webhooks', { as: 's0', body });
  await world.stop();
  await sql`insert into container_events (container_id, kind, status)
    select id, 'changed', 'active' from containers, generate_series(1, ${BACKLOG / CONTAINERS}::integer) as n
    order by n`.execute(world.owner);
  const first = await start();
  await eventually(() => demand(receiver.received.length > BACKLOG / 10, 'too few'), { timeoutMs: 600_000 });
  await first.kill();
  const sent = receiver.received.length;
  await sql`update webhook_queues set due_at = now() where lease is not null`.execute(world.owner);
  const since = performance.now();
  const second = await start();
  const pending = async () => {
    const { rows } = await sql<{ n: number }>`
      select count(*)::integer as n from webhook_deliveries where status = 'pending'`.execute(world.owner);
    return rows[0]?.n ?? 0;
  };
  await eventually(async () => demand((await pending()) === 0, 'some are pending'), {
    timeoutMs: 1_200_000,
    intervalMs: 1_000,
  });
  const seconds = (performance.now() - since) / 1000;
  const distinct = new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size;
  await bench(`webhook backlog of ${BACKLOG}, a kill in between: lost`, {
    unit: '',
    run: () => BACKLOG - distinct,
  });
  await bench('  sent twice', { unit: '', run: () => receiver.received.length - distinct });
  await bench('  messages/s of one process', {
    unit: '',
    run: () => (receiver.received.length - sent) / seconds,
  });
  await second.stop();
  await receiver.stop();
}

function demand(holds: boolean, problem: string): void {
  if (!holds) throw new Error(problem);
}

function residentMiB(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}
