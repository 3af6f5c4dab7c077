import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { eventually } from '../support/eventually.ts';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { creation, World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';
import { latenciesOf } from './management-client.ts';

const COMMITS = 100_000;
const SITES = 1_000;
/** One of this many commits changes the container that is read. */
const OWN = 2_000;
const TIMES = 60;

/** Reading the newest page of one container's history and the page after it, among a hundred thousand commits. */
export const managementHistory: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  const { db, owner } = await postgresql.connections();
  const world = await World.open({ db, owner, settings: { followMs: 500 }, logLevel: 'silent' });
  try {
    const body = creation(await world.client());
    const made = await world.call('POST', '/server-containers', { as: 'owner', body });
    const one = `/server-containers/${made.body.id}`;
    await eventually(async () => {
      const seen = await world.call('GET', one, { as: 'owner' });
      if (seen.body.status !== 'active') throw new Error(`the container is ${seen.body.status}`);
    });
    await world.stop();
    await addCommits(world, made.body.siteId);
    await world.start({ follow: false });
    await measure(bench, world, one);
  } finally {
    await world.close();
    await postgresql.stop();
  }
};

async function measure(bench: Bench, world: World, one: string): Promise<void> {
  const address = await world.listen();
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const history = `${address}${one}/history?limit=20`;
  const took = async (work: () => Promise<unknown>) => {
    const since = performance.now();
    await work();
    return performance.now() - since;
  };
  await bench(`history of one container among ${COMMITS} commits: before they are indexed`, {
    unit: 'ms',
    run: async () =>
      (await latenciesOf({ urls: [history], authorization, count: 1 })).flat()[0] ?? Number.NaN,
  });
  await bench('  to index them, in the background', {
    unit: 's',
    run: async () => (await took(() => world.repo.indexHistory())) / 1_000,
  });
  const { body } = await world.call('GET', `${one}/history?limit=20`, { as: 'owner' });
  const urls = [`${address}${one}`, history, `${history}&cursor=${body.next}`];
  await latenciesOf({ urls, authorization, count: 20 });
  const [single = [], newest = [], older = []] = await latenciesOf({ urls, authorization, count: TIMES });
  await bench('  newest page: median', { unit: 'ms', run: () => percentile(newest, 0.5) });
  await bench('  newest page: p99', { unit: 'ms', run: () => percentile(newest, 0.99) });
  await bench('  next page: p99', { unit: 'ms', run: () => percentile(older, 0.99) });
  await bench('  GET of one container in the same run: p99', {
    unit: 'ms',
    run: () => percentile(single, 0.99),
  });
}

/** Commits of other sites and, at intervals, one that renames the container. */
async function addCommits(world: World, site: string): Promise<void> {
  const text = (await world.file(site)) ?? '';
  function* stream() {
    for (let index = 0; index < COMMITS; index += 1) {
      const isOwn = index % OWN === 0;
      const path = isOwn ? `${site}.yaml` : `other-${index % SITES}.yaml`;
      const content = isOwn ? text.replace(/^name: .*$/m, `name: Change ${index}`) : `change: ${index}\n`;
      const from = index === 0 ? 'from refs/heads/main^0\n' : '';
      yield `commit refs/heads/main\ncommitter Bench <bench@example.net> ${1_700_000_000 + index} +0000\n`;
      yield `data 6\nChange\n${from}M 100644 inline ${path}\n`;
      yield `data ${Buffer.byteLength(content)}\n${content}\n`;
    }
    yield 'done\n';
  }
  const args = ['-C', world.bare, 'fast-import', '--quiet', '--done', '--force'];
  const importing = spawn('git', args, { stdio: ['pipe', 'ignore', 'inherit'] });
  const exited = once(importing, 'exit');
  await pipeline(Readable.from(stream()), importing.stdin);
  const [code] = await exited;
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
}

function percentile(times: readonly number[], fraction: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * fraction) - 1] ?? Number.NaN;
}
