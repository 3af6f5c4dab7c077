import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { deploymentState } from '../../gitops/kubernetes/applier/state/deployment.ts';
import { openKubernetes } from '../../gitops/kubernetes/client/client.ts';
import type { KubernetesObject } from '../../gitops/kubernetes/client/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { ACCOUNT, makeAccount } from '../support/kubernetes/account.ts';
import type { ApiRequest } from '../support/kubernetes/audit-log.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import type { Bench, Suite } from './bench.ts';
import { cpuMs } from './cpu.ts';
import { BenchChild } from './kubernetes-child.ts';
import { IDENTITY, renderedSites, siteOf } from './kubernetes-sites.ts';

const NODES = 20;
const DEPLOYMENTS = 2;
const IDLE_SECONDS = 60;
/** The site that is changed. */
const CHANGED = 7;
const { signal } = new AbortController();

/** The costs of one round: the start of all sites, and the change of one. */
interface Round {
  readonly lastApply: number;
  readonly ready: number;
  readonly requests: number;
  readonly server: number;
  readonly own: number;
  /** Seconds from the change of one site until its new pods are ready. */
  readonly change: number;
  /** Calls for that change that the provisioner's account made. */
  readonly changeCalls: number;
}
const WAYS = ['appliers', 'control'] as const;
type Way = (typeof WAYS)[number];

/**
 * Sites in a Kubernetes cluster without real nodes: our appliers (A), compared with bare applies of the same objects
 * (B). Each runs in a new cluster, in the order A B B A. `BENCH_KUBERNETES_SITES`: how many (200).
 * `BENCH_KUBERNETES_ONCE=1`: only A B, for so many sites that a round takes minutes.
 */
export const kubernetes: Suite = async (bench) => {
  const sites = Number(process.env.BENCH_KUBERNETES_SITES ?? 200);
  const rounds: Record<Way, Round[]> = { appliers: [], control: [] };
  console.log(`load of the machine: ${loadavg()[0]}`);
  const isOnce = process.env.BENCH_KUBERNETES_ONCE === '1';
  const order: readonly Way[] = isOnce ? WAYS : [...WAYS, ...WAYS.toReversed()];
  for (const way of order) {
    // Figures that only the appliers have are taken once.
    const isLast = isOnce || rounds.control.length > 0;
    const alone = way === 'appliers' && isLast ? bench : null;
    rounds[way].push(await measured(way, sites, alone));
  }
  const shown = [
    ['lastApply', 's', 'last apply'],
    ['ready', 's', 'all pods ready'],
    ['requests', 'calls', 'requests'],
    ['server', 's', 'CPU of the API server'],
    ['own', 's', 'own CPU'],
    ['change', 's', 'one site changed: its pods ready'],
  ] as const;
  for (const [key, unit, what] of shown) {
    const medians: number[] = [];
    for (const way of WAYS) {
      const left = rounds[way].map((round) => round[key]);
      const figure = await bench(`${what}, ${sites} sites, ${way}`, {
        unit,
        times: left.length,
        run: () => left.shift() ?? Number.NaN,
      });
      medians.push(figure.median);
    }
    const [ours = 0, control = 0] = medians;
    await bench('  of the control', { unit: '×', run: () => ours / control });
  }
  const calls = rounds.appliers.map(({ changeCalls }) => changeCalls);
  await bench(`one site changed, ${sites} sites, appliers: calls`, {
    unit: 'calls',
    times: calls.length,
    run: () => calls.shift() ?? Number.NaN,
  });
};

async function measured(way: Way, sites: number, alone: Bench | null): Promise<Round> {
  await using cluster = await Cluster.start({ nodes: 0, simulated: NODES });
  const kubeconfig = await makeAccount(cluster);
  await using watch = await watchDeployments(cluster);
  const own = () => cluster.requests().filter(({ user }) => user === ACCOUNT);
  await using child = await BenchChild.start(`kubernetes-${way}.ts`, { kubeconfig, sites });
  const before = { own: child.cpuMs, server: cpuMs(cluster.apiServerPid) };
  const begun = Date.now();
  const work = child.ask('run');
  const [ready] = await Promise.all([watch.ready(sites * DEPLOYMENTS, begun), work]);
  const server = (cpuMs(cluster.apiServerPid) - before.server) / 1000;
  const ownCpu = (child.cpuMs - before.own) / 1000;
  const calls = own();
  const applies = calls.filter(({ verb }) => verb === 'patch').map(({ at }) => at);
  console.log(`${way}: ${countsOf(calls)}`);

  if (alone !== null) await steady(alone, { cluster, child, kubeconfig, sites, count: own });
  const oneChanged = await changed(way, { cluster, child, watch, count: own });
  return {
    lastApply: (Math.max(...applies) - begun) / 1000,
    ready,
    requests: calls.length,
    server,
    own: ownCpu,
    ...oneChanged,
  };
}

interface Running {
  readonly cluster: Cluster;
  readonly child: BenchChild;
  readonly count: () => ApiRequest[];
}

/** Seconds from the change of one site's configuration to the end of its rollout. */
async function changed(
  way: Way,
  { cluster, child, watch, count }: Running & { watch: Watch },
): Promise<Pick<Round, 'change' | 'changeCalls'>> {
  const site = `site-${CHANGED}`;
  const file = join(cluster.folder, 'changed.json');
  const items = renderedSites([siteOf(CHANGED, '2')]).filter(
    ({ metadata }) => metadata.labels?.['tagyard/site'] === site,
  );
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const before = count().length;
  const begun = Date.now();
  const rolledOut = watch.rolledOut(site, begun);
  const work =
    way === 'appliers'
      ? child.ask('change', CHANGED)
      : cluster.kubectl(
          ...['apply', '--server-side', '--field-manager=tagyard', '--force-conflicts'],
          ...['--filename', file],
        );
  const [change] = await Promise.all([rolledOut, work]);
  const calls = count().slice(before);
  if (way === 'appliers') console.log(`one site changed: ${countsOf(calls)}`);
  return { change, changeCalls: calls.length };
}

/** What the appliers cost while they have nothing to do, and what a start with nothing to do costs. */
async function steady(
  bench: Bench,
  { child, kubeconfig, sites, count }: Running & { kubeconfig: string; sites: number },
): Promise<void> {
  const calls = async (work: () => Promise<unknown>) => {
    const before = count().length;
    await work();
    return count().slice(before);
  };
  await child.ask('pass');
  const idle = child.cpuMs;
  const idleCalls = await calls(() => secondsPass(IDLE_SECONDS));
  const cpu = (child.cpuMs - idle) / 1000;
  await bench(`nothing to do, ${sites} sites: CPU a minute`, { unit: 's', run: () => cpu });
  await bench('  calls', {
    unit: 'calls',
    run: () => idleCalls.filter(({ verb }) => verb !== 'watch').length,
  });
  const passing = child.cpuMs;
  const passCalls = await calls(() => child.ask('pass'));
  await bench('a pass over all sites: CPU', { unit: 's', run: () => (child.cpuMs - passing) / 1000 });
  await bench('  calls', { unit: 'calls', run: () => passCalls.length });
  await using again = await BenchChild.start('kubernetes-appliers.ts', { kubeconfig, sites });
  const starting = again.cpuMs;
  const startCalls = await calls(async () => {
    const changes = await again.ask('pass');
    if (changes > 0) throw new Error(`${changes} changes are planned after a start`);
  });
  console.log(`cold start: ${countsOf(startCalls)}`);
  await bench(`cold start, ${sites} sites: CPU`, { unit: 's', run: () => (again.cpuMs - starting) / 1000 });
  await bench('  calls', {
    unit: 'calls',
    run: () => startCalls.filter(({ verb }) => verb !== 'watch').length,
  });
}

async function secondsPass(seconds: number): Promise<void> {
  const end = Date.now() + seconds * 1000;
  const isOver = () => {
    if (Date.now() < end) throw new Error('not yet');
  };
  await eventually(isOver, { timeoutMs: 2_000 * seconds, intervalMs: 1_000 });
}

/** The numbers of calls as text, such as `patch deployments 200: 3, list secrets 200: 1`. */
function countsOf(calls: readonly ApiRequest[]): string {
  const groups = Map.groupBy(calls, ({ verb, resource, code }) => `${verb} ${resource} ${code}`);
  return [...groups].map(([name, { length }]) => `${name}: ${length}`).join(', ');
}

/** The Deployments, watched in the same way for the appliers and the control. */
async function watchDeployments(cluster: Cluster) {
  const client = await openKubernetes({ kubeconfig: cluster.kubeconfig, context: undefined });
  const labels = `tagyard/instance=${IDENTITY.instance}`;
  const copy = client.watched({ kind: 'Deployment', labels });
  await copy.ready(signal);
  const states = () =>
    [...copy.objects.values()].map((object) => ({ object, state: deploymentState(object) }));
  const isReady = ({ state }: ReturnType<typeof states>[number]) =>
    state.isRolledOut && state.updated === state.replicas && state.available === state.replicas;
  /** Seconds from `begun` until `isSo` is true. */
  const until = (begun: number, isSo: () => boolean, intervalMs: number) =>
    eventually(
      () => {
        if (!isSo()) throw new Error('the pods aren’t ready');
        return (Date.now() - begun) / 1000;
      },
      { timeoutMs: 1_800_000, intervalMs },
    );
  return {
    ready: (count: number, begun: number) =>
      until(begun, () => copy.objects.size === count && states().every(isReady), 500),
    rolledOut(site: string, begun: number) {
      const own = () => states().filter(({ object }) => object.metadata.labels?.['tagyard/site'] === site);
      const before = new Map(own().map(({ object }) => [object.metadata.name, object.metadata.generation]));
      const isNew = ({ metadata }: KubernetesObject) => metadata.generation !== before.get(metadata.name);
      return until(begun, () => own().every((one) => isNew(one.object) && isReady(one)), 50);
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}
type Watch = Awaited<ReturnType<typeof watchDeployments>>;
