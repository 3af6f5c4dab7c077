import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'undici';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { ManagementProcesses } from '../support/management/processes.ts';
import { World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';
import { latenciesOf } from './management-client.ts';

/** Requests of the measured client a round; rounds with and without the stranger alternate. */
const REQUESTS = 300;
const ROUNDS = 4;

/** A minute's limit of a caller (RATE_LIMIT_PER_SUBJECT), spread evenly. These processes have no such limit. */
const PAUSE_MS = 50;

/** The largest body of the route, valid JSON with many small values. */
const EXPORT = JSON.stringify({
  containerVersion: { tag: Array.from({ length: 90_000 }, () => ({ a: 1, b: [1, 2] })) },
});
const DEEP = `{"a":${'['.repeat(60_000)}${']'.repeat(60_000)}}`;
const KEYS = JSON.stringify(Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`key${n}`, n])));

/** What a login without any membership costs another client: p99 of its requests meanwhile, relative to without. */
export const managementStrangers: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  try {
    const { urls, db, owner } = await postgresql.connections();
    const world = await World.open({ db, owner, logLevel: 'silent' });
    await world.client();
    await world.stop();
    const processes = await ManagementProcesses.start(1, { world, urls });
    try {
      const path = (end: string) => `/server-containers/${randomUUID()}${end}`;
      const exports = { path: () => path('/checklist/export'), body: EXPORT };
      const cases = [
        { name: 'exports of 4 MiB', ...exports, pauseMs: PAUSE_MS },
        { name: 'deep bodies', path: () => path('/domains'), body: DEEP, pauseMs: PAUSE_MS },
        { name: 'bodies of 9,000 keys', path: () => '/clients', body: KEYS, pauseMs: PAUSE_MS },
        { name: 'exports of 4 MiB without a pause', ...exports, pauseMs: 0 },
      ];
      for (const one of cases) await measure(bench, { world, processes, ...one });
    } finally {
      await processes.stop();
      await world.close();
    }
  } finally {
    await postgresql.stop();
  }
};

interface Case {
  readonly world: World;
  readonly processes: ManagementProcesses;
  readonly name: string;
  readonly path: () => string;
  readonly body: string;
  /** Between two of the stranger's requests. */
  readonly pauseMs: number;
}

async function measure(bench: Bench, { world, processes, name, path, body, pauseMs }: Case): Promise<void> {
  const url = processes.all()[0]?.url ?? '';
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const stranger = `Bearer ${await world.issuer.token('stranger')}`;
  const errand = { urls: [`${url}/clients`], authorization, count: REQUESTS };
  await latenciesOf(errand);
  const quiet: number[] = [];
  const busy: number[] = [];
  let sent = 0;
  const statuses = new Set<number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    quiet.push(...((await latenciesOf(errand))[0] ?? []));
    const dispatcher = new Agent({ connections: 1 });
    const send = async () => {
      const headers = { authorization: stranger, 'content-type': 'application/json' };
      const answer = await request(`${url}${path()}`, { method: 'POST', dispatcher, headers, body });
      await answer.body.dump();
      statuses.add(answer.statusCode);
      sent += 1;
    };
    const until = new AbortController();
    const sending =
      pauseMs === 0 ? repeat(send, until.signal) : paced(send, { pauseMs, signal: until.signal });
    busy.push(...((await latenciesOf(errand))[0] ?? []));
    until.abort();
    await sending;
    await dispatcher.close();
  }
  const answered = [...statuses].join(', ');
  await bench(
    `GET /clients while a stranger sends ${name} (${sent}, answered ${answered}): p99, relative to without`,
    {
      unit: '×',
      run: () => p99(busy) / p99(quiet),
    },
  );
  await bench('  without: p99', { unit: 'ms', run: () => p99(quiet) });
}

async function repeat(send: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await send();
}

async function paced(
  send: () => Promise<void>,
  { pauseMs, signal }: { pauseMs: number; signal: AbortSignal },
) {
  const pending: Promise<void>[] = [];
  const timer = setInterval(() => pending.push(send()), pauseMs);
  await once(signal, 'abort');
  clearInterval(timer);
  await Promise.all(pending);
}

const p99 = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
