import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import {
  answeredWithin,
  BUSY_RACE_MS,
  type EdgeLoadReport,
  renderLoad,
} from '../support/gateway/edge-load.ts';
import { hostOf, NodesStage, SITE, serviceOf } from '../support/gateway/nodes.ts';
import { SLOW_PATH } from '../support/gateway/pods.ts';
import { GATEWAYS, SITES } from '../support/gateway/stage.ts';
import { ask } from '../support/proxy/proxy.ts';

const PER_SECOND = 40;
/**
 * Fewer POSTs than this may find their kept connection closed just when they use it (`raced`): a few of hundreds may,
 * but not all POSTs on kept connections of one second, which are this many.
 */
const MOST_RACED = PER_SECOND / 4;
type Load = ReturnType<NodesStage['load']>;
type LoadOptions = Parameters<NodesStage['load']>[2];
/** The options of a load during which gateways end. */
const ENDING: LoadOptions = { raceMs: BUSY_RACE_MS };
const WAIT = { timeoutMs: 180_000, intervalMs: 200 };

describeWith(['kubernetes', 'root', 'nginx', 'haproxy'], 'gateways on the nodes of a cluster', () => {
  let nodes: NodesStage;

  beforeAll(async () => {
    nodes = await NodesStage.start({ nodes: 3, lostAfter: 18 });
  });
  afterAll(() => nodes?.[Symbol.asyncDispose]());

  /** The names of the pods that answer to some requests. */
  const answering = async () => {
    const names = new Set<string>();
    for (let count = 0; count < 10; count += 1) {
      const { headers } = await ask(nodes.endpoint, { host: nodes.host });
      names.add(String(headers['x-upstream']));
    }
    return [...names].sort();
  };
  const isSent = (load: Load, seconds: number) => {
    const from = load.now();
    const isOver = () => expect(load.now() - from).toBeGreaterThan(seconds);
    return eventually(isOver, WAIT);
  };

  /** Proves that every request is answered while the work is done, and for some seconds after it. */
  async function withoutLoss(
    title: string,
    work: (load: Load) => Promise<unknown>,
    options: LoadOptions = {},
  ) {
    const { failures, raced, sent } = await underLoad(title, work, options);
    expect(failures).toEqual([]);
    expect(raced).toBeLessThan(MOST_RACED);
    expect(sent).toBeGreaterThan(2 * PER_SECOND);
  }
  async function underLoad(title: string, work: (load: Load) => Promise<unknown>, options: LoadOptions = {}) {
    const load = nodes.load(PER_SECOND, SITE, options);
    const [done] = await Promise.allSettled([work(load)]);
    await isSent(load, 2);
    const report = await load.end();
    process.stdout.write(`${title}: ${renderLoad(report)}\n`);
    if (done.status === 'rejected') throw done.reason;
    return report;
  }

  test('find both pods of a site, on different nodes, by a real controller’s EndpointSlices', async () => {
    const names = (await nodes.readyPods(SITES)).map(({ metadata }) => metadata.name).sort();
    await eventually(async () => expect(await answering()).toEqual(names));
  });

  test('lose no request in a rollout of the site and back', async () => {
    await withoutLoss('rollout and back', async () => {
      for (const _ of ['there', 'back']) await nodes.roll(SITES, serviceOf(SITE));
    });
  });

  test('lose no request when they are rolled themselves', async () => {
    await withoutLoss('gateways rolled', () => nodes.roll(GATEWAYS, 'gateway'), ENDING);
  });

  test('lose no request when a node with a gateway and a pod of the site is drained', async () => {
    const { node } = await nodes.sharedNode();
    await withoutLoss('drain', () => nodes.drain(node), ENDING);
    const left = [...(await nodes.readyPods(SITES)), ...(await nodes.readyPods(GATEWAYS))];
    expect(left.map(({ spec }) => spec.nodeName)).not.toContain(node.name);
  });

  test('lose no request while the API server is away, and after its return', async () => {
    await withoutLoss('API server away', (load) =>
      nodes.stage.cluster.restartApiServer(() => isSent(load, 12)),
    );
    // The gateways follow the API server again: a name that is delivered now is served.
    await nodes.stage.deliverSite('later', [
      {
        kind: 'origin',
        host: hostOf('later'),
        namespace: SITES,
        service: serviceOf(SITE),
        port: nodes.sitePort,
      },
    ]);
    await eventually(
      async () => expect((await ask(nodes.endpoint, { host: hostOf('later') })).status).toBe(200),
      WAIT,
    );
  });

  test('lose no request while all kubelets are cut off and the API server lists no ready pod', async () => {
    let healedAt = 0;
    const { failures } = await underLoad('kubelets cut off', async (load) => {
      await nodes.cutKubelets();
      // Longer than ten seconds: if half of all endpoints vanish within that time, the gateways keep them.
      await isSent(load, 12);
      healedAt = load.now();
      await nodes.healNodes();
    });
    // When the kubelets return, kube-proxy may first learn that no gateway is ready, before they report the gateways as
    // ready. It then drops new connections to the gateways' Service, and requests fail until the front notices this: it
    // ends its open connections to the gateways, and uses their second Service.
    expect(failures.filter(({ at }) => at < healedAt - 1)).toEqual([]);
    expect(failures.length).toBeLessThan(PER_SECOND / 2);
  });

  test('continue to serve after the loss of a node with a gateway, a pod of a site, both pods of another and CoreDNS', async () => {
    const { node, others } = await nodes.sharedNode();
    await nodes.serve('twin', node);
    await nodes.moveNames(node);
    await eventually(async () =>
      expect((await ask(nodes.endpoint, { host: hostOf('twin') })).status).toBe(200),
    );
    const load = nodes.load(PER_SECOND);
    const twin = nodes.load(5, 'twin');
    await isSent(load, 5);
    // These requests reach both pods through the gateway that stays, and are in flight when the node is cut off.
    const onLost = new Set((await nodes.pods(SITES)).filter(({ spec }) => spec.nodeName === node.name));
    const stays = await nodes.gatewayOn(others);
    const held = Array.from({ length: 8 }, async () => {
      const begun = performance.now();
      const { status, headers } = await ask(stays, { host: nodes.host, path: SLOW_PATH });
      return { status, upstream: String(headers['x-upstream']), ms: performance.now() - begun };
    });
    await isSent(load, 0.4);
    const cutAt = load.now();
    const twinCutAt = twin.now();
    await node.cut('all');
    await isSent(load, 10);
    const cut = await load.end();
    process.stdout.write(`node cut: ${renderLoad(cut)}\n`);
    const answers = await Promise.all(held);
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    for (const { metadata } of onLost)
      expect(answers.map(({ upstream }) => upstream)).not.toContain(metadata.name);
    expect(answers.some(({ ms }) => ms > 2_000)).toBe(true);
    const after = nodes.load(PER_SECOND);
    // The cluster counts the node as lost after 18 seconds (`lostAfter`), and later replaces what was on it.
    await nodes.stage.cluster.nodesAre({
      [node.name]: 'Unknown',
      ...Object.fromEntries(others.map(({ name }) => [name, 'True'])),
    });
    await eventually(() => nodes.readyPods(SITES, serviceOf('twin')), WAIT);
    await eventually(async () =>
      expect((await ask(nodes.endpoint, { host: hostOf('twin') })).status).toBe(200),
    );
    await isSent(twin, 3);
    const [later, twinReport] = await Promise.all([after.end(), twin.end()]);
    process.stdout.write(`cluster reacts: ${renderLoad(later)}\n`);
    process.stdout.write(`both pods of a site lost: ${renderLoad(twinReport)}\n`);
    expect(later.failures).toEqual([]);
    expectHeld(cut, cutAt);
    // Nothing can answer for the site that has lost both pods: its requests fail from the cut until a pod is ready.
    const failed = twinReport.failures.map(({ at }) => at);
    expect(failed).not.toEqual([]);
    expect(Math.min(...failed)).toBeGreaterThan(twinCutAt - 5);
    expect(twinReport.answered.some(({ at }) => at > Math.max(...failed))).toBe(true);
  });

  /** Proves that only requests failed that can't be sent again and were on their way at the cut. */
  function expectHeld(report: EdgeLoadReport, cutAt: number) {
    expect(report.failures.filter(({ canBeSentAgain }) => canBeSentAgain)).toEqual([]);
    // The front notices the loss by itself, long before the cluster does.
    expect(report.failures.filter(({ at }) => Math.abs(at - cutAt) > 5)).toEqual([]);
    expect(report.failures.length).toBeLessThan(PER_SECOND / 2);
    const before = answeredWithin(report, 0.99, { from: 1, to: cutAt });
    const from = answeredWithin(report, 0.99, { from: cutAt + 3 });
    process.stdout.write(`p99 before ${before.toFixed(0)} ms, from the third second ${from.toFixed(0)} ms\n`);
  }
});
