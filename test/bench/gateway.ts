import { loadavg } from 'node:os';
import { eventually } from '../support/eventually.ts';
import { ChartProvisioner } from '../support/gateway/chart-provisioner.ts';
import {
  answeredWithin,
  BUSY_RACE_MS,
  type EdgeLoadReport,
  renderLoad,
} from '../support/gateway/edge-load.ts';
import { ManySites } from '../support/gateway/many-sites.ts';
import { MoveStage } from '../support/gateway/moves.ts';
import { NodesStage, SITE, serviceOf } from '../support/gateway/nodes.ts';
import { GATEWAYS, SITES } from '../support/gateway/stage.ts';
import type { ClusterNode } from '../support/kubernetes/node.ts';
import { HOP_SECRET } from '../support/proxy/proxy.ts';
import type { Bench, Suite } from './bench.ts';

const PER_SECOND = 40;
/** Seconds of load before an event, and after it. */
const BEFORE_SECONDS = 10;
const AFTER_SECONDS = 10;
/** Seconds until an event is noticed; the p99 after the event excludes them. */
const FOUND_OUT_SECONDS = 3;
const WAYS = ['gateway', 'control'] as const;

type Load = ReturnType<NodesStage['load']>;

interface Row {
  readonly name: string;
  /** How often the event is measured; default: once. */
  readonly times?: number;
  /** The site whose requests are counted; default: the site with a pod on each of two nodes. */
  readonly site?: string;
  /** Why some requests must fail. */
  readonly limit?: string;
  /** True if a gateway ends, which closes its kept-alive connections; no other connection is cut. */
  readonly isEnding?: true;
  /** Prepares the cluster before the load begins. */
  prepare?(nodes: NodesStage, node: ClusterNode): Promise<unknown>;
  /** Makes the event happen, and resolves when it is over. */
  run(nodes: NodesStage, node: ClusterNode): Promise<unknown>;
  /** Brings the cluster back after the load. */
  after?(nodes: NodesStage): Promise<unknown>;
}

/**
 * Events in a cluster under load. Requests are sent through the front and a gateway. For control, as many are sent
 * at the same time to a plain Service of the same pods, by a client that repeats the requests that the edge would
 * repeat. `BENCH_GATEWAY_SECONDS`: how long the API server is away, and how long kubelets are cut off from it (120).
 * `BENCH_GATEWAY_ROWS`: measures only the rows whose names contain this text.
 */
export const gateway: Suite = async (bench) => {
  console.log(`load of the machine: ${loadavg()[0]}`);
  const only = process.env.BENCH_GATEWAY_ROWS ?? '';
  const rows = ROWS.filter(({ name }) => name.includes(only));
  if (rows.length > 0) await onNodes(bench, rows);
  if (MOVE.includes(only)) await move(bench);
  if (CHANGE.includes(only)) await change(bench);
};

async function onNodes(bench: Bench, rows: readonly Row[]): Promise<void> {
  await using nodes = await NodesStage.start({ nodes: 3 });
  for (const row of rows) {
    for (let count = 0; count < (row.times ?? 1); count += 1) await measure(bench, nodes, row);
  }
}

const MOVE = 'a site moved from a machine and back';

/** There is no control: no single Service exists throughout the move. */
async function move(bench: Bench): Promise<void> {
  await using stage = await MoveStage.start();
  const load = await stage.load(PER_SECOND);
  await secondsPass(BEFORE_SECONDS);
  const at = load.now();
  for (const to of ['tag-2', 'tag-1'] as const) await stage.move(to);
  await secondsPass(AFTER_SECONDS);
  const report = await load.end();
  console.log(`${MOVE}: ${renderLoad(report)}`);
  await figures(bench, MOVE, { report, at });
}

const awaySeconds = () => Number(process.env.BENCH_GATEWAY_SECONDS ?? 120);

/** A node with a gateway and a pod of the site is cut off. The cluster finds out within a minute. */
const CUT = {
  async run(_nodes: NodesStage, node: ClusterNode, seconds = 60) {
    await node.cut('all');
    await secondsPass(seconds);
  },
  after: (nodes: NodesStage) => nodes.healNodes(),
};

/** A site whose pods are both on one node. */
const TWIN = 'twin';

const ROWS: readonly Row[] = [
  { name: 'nothing happens', run: () => secondsPass(AFTER_SECONDS) },
  {
    name: 'rollout and back',
    async run(nodes) {
      for (const _ of WAYS) await nodes.roll(SITES, serviceOf(SITE));
    },
  },
  {
    name: 'pod killed',
    async run(nodes) {
      const [pod] = await nodes.readyPods(SITES);
      const force = ['--grace-period=0', '--force', '--namespace', SITES];
      await nodes.stage.cluster.kubectl('delete', 'pod', pod?.metadata.name ?? '', ...force);
      await nodes.settled();
    },
  },
  { name: 'node drained', isEnding: true, run: (nodes, node) => nodes.drain(node) },
  { name: 'gateways rolled', isEnding: true, run: (nodes) => nodes.roll(GATEWAYS, 'gateway') },
  {
    name: 'hop secret rotated, gateways reloaded',
    async run({ stage }) {
      const next = 'next-secret-of-the-bench-0123456789';
      for (const hopSecret of [
        { current: next, previous: HOP_SECRET },
        { current: next },
        { current: HOP_SECRET },
      ]) {
        await stage.deliverInstance({ hopSecret });
        await secondsPass(3);
      }
    },
  },
  { name: 'API server restarted', run: ({ stage }) => stage.cluster.restartApiServer() },
  {
    name: 'API server away',
    async run({ stage }) {
      await stage.cluster.restartApiServer(() => secondsPass(awaySeconds()));
    },
    after: (nodes) => nodes.healNodes(),
  },
  {
    name: 'all kubelets cut off',
    async run(nodes) {
      const begun = Date.now();
      await nodes.cutKubelets();
      await secondsPass(awaySeconds() - (Date.now() - begun) / 1000);
      await nodes.healNodes();
    },
  },
  { name: 'node cut off', times: 3, ...CUT },
  { name: 'node of CoreDNS cut off', prepare: (nodes, node) => nodes.moveNames(node), ...CUT },
  {
    name: 'node of the provisioner cut off',
    async prepare({ stage }, node) {
      const provisioner = await ChartProvisioner.install(stage.cluster);
      stage.own(provisioner);
      await provisioner.moveTo(node.name);
    },
    ...CUT,
  },
  {
    name: 'node with both pods of a site cut off',
    site: TWIN,
    limit: 'no pod can answer until the cluster has given the node up and started other pods',
    prepare: (nodes, node) => nodes.serve(TWIN, node),
    ...CUT,
    // 50 seconds until the node counts as lost, 30 more until its pods are replaced, and the start of pods.
    run: (nodes, node) => CUT.run(nodes, node, 110),
  },
];

const CHANGE = 'a change of one site among 1,000, until both gateways serve it';
/** How often the site is changed. */
const CHANGES = 20;

async function change(bench: Bench): Promise<void> {
  await using sites = await ManySites.start();
  await eventually(() => sites.expectReaches('site-0', 'first'));
  let count = 0;
  await bench(CHANGE, {
    unit: 'ms',
    times: CHANGES,
    async run() {
      count += 1;
      const next = count % 2;
      const { port } = sites.upstreams[next === 0 ? 0 : 1];
      await sites.list('site-0', port);
      const begun = performance.now();
      await sites.deliver('site-0', port, true);
      const reached = () => sites.expectReaches('site-0', next === 0 ? 'first' : 'second');
      await eventually(reached, { intervalMs: 10 });
      return performance.now() - begun;
    },
  });
}

async function measure(bench: Bench, nodes: NodesStage, row: Row): Promise<void> {
  const { name, site = SITE, limit, isEnding, prepare, run, after } = row;
  const { node, others } = await nodes.sharedNode();
  await prepare?.(nodes, node);
  const [through] = others;
  if (through === undefined) throw new Error('the cluster has only one node');
  const loads: Record<(typeof WAYS)[number], Load> = {
    gateway: nodes.load(PER_SECOND, site, isEnding ? { raceMs: BUSY_RACE_MS } : {}),
    control: await nodes.plainLoad(PER_SECOND, through, site),
  };
  await secondsPass(BEFORE_SECONDS);
  const at = { gateway: loads.gateway.now(), control: loads.control.now() };
  await run(nodes, node);
  await secondsPass(AFTER_SECONDS);
  const [viaGateway, viaService] = await Promise.all([loads.gateway.end(), loads.control.end()]);
  await after?.(nodes);
  if (limit !== undefined) console.log(`${name}: ${limit}`);
  for (const [way, report] of [
    ['gateway', viaGateway],
    ['control', viaService],
  ] as const) {
    console.log(`${name}, ${way}: ${renderLoad(report)}`);
    await figures(bench, `${name}, ${way}`, { report, at: at[way] });
  }
}

async function figures(
  bench: Bench,
  title: string,
  { report, at }: { report: EdgeLoadReport; at: number },
): Promise<void> {
  const { sent, failures, answered } = report;
  const failed = (canBe: boolean, isBehind: boolean) =>
    failures.filter((one) => one.canBeSentAgain === canBe && one.isBehind === isBehind).length;
  const unit = 'requests';
  // In the control, the Service takes the gateway's place.
  await bench(`${title}: sent`, { unit, run: () => sent });
  await bench('  can be sent again: lost before the gateway', { unit, run: () => failed(true, false) });
  await bench('  can be sent again: lost behind the gateway', { unit, run: () => failed(true, true) });
  await bench('  can’t be sent again: lost before the gateway', { unit, run: () => failed(false, false) });
  await bench('  can’t be sent again: lost behind the gateway', { unit, run: () => failed(false, true) });
  await bench('  slowest answer', { unit: 'ms', run: () => Math.max(...answered.map(({ ms }) => ms)) });
  const before = answeredWithin(report, 0.99, { from: 2, to: at - 0.1 });
  const later = answeredWithin(report, 0.99, { from: at + FOUND_OUT_SECONDS });
  await bench('  p99 before the event', { unit: 'ms', run: () => before });
  await bench('  p99 from three seconds after the event’s start on', { unit: 'ms', run: () => later });
}

async function secondsPass(seconds: number): Promise<void> {
  const end = Date.now() + seconds * 1000;
  const isOver = () => {
    if (Date.now() < end) throw new Error('not yet');
  };
  await eventually(isOver, { timeoutMs: 2_000 * Math.max(seconds, 1), intervalMs: 100 });
}
