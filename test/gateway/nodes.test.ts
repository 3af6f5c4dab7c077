import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../gitops/base/free-port.ts';
import { describeWith, PATH_WITH_SBIN } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { gatewayPods, MACHINE_IMAGE, NODE_PORTS, sitePods } from '../support/gateway/pods.ts';
import { GATEWAYS, GatewayStage, SITES } from '../support/gateway/stage.ts';
import { writeProgramImage } from '../support/kubernetes/image.ts';
import { ask } from '../support/proxy/proxy.ts';
import { startLoad } from '../support/steady-load.ts';

const PORT = 20_001;
const HOST = 'acme-origin.example.net';
const WAIT = { timeoutMs: 120_000, intervalMs: 200 };

describeWith(['kubernetes', 'root', 'nginx', 'haproxy'], 'gateways on the nodes of a cluster', () => {
  let stage: GatewayStage;
  let front: ChildProcess;
  let port: number;

  const podsOf = async (namespace: string) => {
    const found = JSON.parse(
      await stage.cluster.kubectl('get', 'pods', '--namespace', namespace, '--output', 'json'),
    );
    return found.items as {
      metadata: { name: string; deletionTimestamp?: string };
      spec: { nodeName: string };
      status: { podIP?: string; conditions?: { type: string; status: string }[] };
    }[];
  };
  const readyPods = async (namespace: string) => {
    const pods = await podsOf(namespace);
    const ready = pods.filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined &&
        status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True'),
    );
    expect(ready).toHaveLength(2);
    return ready;
  };
  const endpoint = () => ({ address: '127.0.0.1', httpPort: 0, tlsPort: port });
  const rollout = (namespace: string, name: string) =>
    stage.cluster.kubectl(
      ...['rollout', 'status', `deployment/${name}`, '--namespace', namespace, '--timeout', '120s'],
    );
  /** The names of the pods that answer, and the failures among some requests. */
  const answering = async () => {
    const names = new Set<string>();
    for (let count = 0; count < 10; count += 1) {
      const { headers } = await ask(endpoint(), { host: HOST });
      names.add(String(headers['x-upstream']));
    }
    return names;
  };

  beforeAll(async () => {
    stage = await GatewayStage.start({ nodes: 2 });
    const image = join(stage.folder, 'machine.tar');
    const program = '/bin/busybox';
    await writeProgramImage(image, { name: MACHINE_IMAGE, program, entrypoint: [program] });
    await stage.cluster.importImages(image);
    await stage.deliverInstance();
    await stage.deliverCertificate('tls-platform', '*.example.net');
    const service = 'tag-acme-processing';
    await stage.deliverSite('acme', [{ kind: 'origin', host: HOST, namespace: SITES, service, port: PORT }]);
    await stage.cluster.apply({
      apiVersion: 'v1',
      kind: 'List',
      items: [...gatewayPods(), ...sitePods('acme', PORT)],
    });
    await eventually(async () => {
      await readyPods(SITES);
      await readyPods(GATEWAYS);
    }, WAIT);
    port = (await freePort('127.0.0.1', 0)) ?? 0;
    front = await startFront();
    await eventually(() => ask(endpoint(), { host: HOST }));
  });
  afterAll(async () => {
    if (front !== undefined) await endFront();
    await stage?.[Symbol.asyncDispose]();
  });

  async function endFront(): Promise<void> {
    const ended = once(front, 'exit');
    front.kill('SIGKILL');
    await ended;
  }

  /** Debian's haproxy as a load balancer of connections, which asks the gateways whether they are ready. */
  async function startFront(whenDown = ''): Promise<ChildProcess> {
    const addresses = stage.cluster.nodes.map(({ address }) => address);
    const file = join(stage.folder, 'haproxy.cfg');
    const check = `check port ${NODE_PORTS.health} inter 500ms fall 2 rise 1${whenDown}`;
    const lines = [
      'defaults',
      '  mode tcp',
      '  timeout connect 300ms',
      '  timeout check 400ms',
      '  timeout client 60s',
      '  timeout server 60s',
      '  retries 3',
      '  option redispatch 1',
      'frontend front',
      `  bind 127.0.0.1:${port}`,
      '  default_backend gateways',
      'backend gateways',
      '  option httpchk GET /ready',
      ...addresses.map((address, index) => `  server gateway-${index} ${address}:${NODE_PORTS.tls} ${check}`),
      '',
    ];
    await writeFile(file, lines.join('\n'));
    return spawn('haproxy', ['-db', '-f', file], { env: { PATH: PATH_WITH_SBIN }, stdio: 'ignore' });
  }

  test('find the pods of a site on both nodes, by a real controller’s EndpointSlices', async () => {
    const names = (await readyPods(SITES)).map(({ metadata }) => metadata.name).sort();
    await eventually(async () => expect([...(await answering())].sort()).toEqual(names));
  });

  test('lose no request in a rollout of the site', async () => {
    const load = startLoad(endpoint(), HOST, { perSecond: 40 });
    await stage.cluster.kubectl('rollout', 'restart', 'deployment/tag-acme-processing', '--namespace', SITES);
    await rollout(SITES, 'tag-acme-processing');
    const { failures, sent } = await load.end();
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(50);
  });

  test('lose no request when they are rolled themselves', async () => {
    const before = (await readyPods(GATEWAYS)).map(({ metadata }) => metadata.name);
    const load = startLoad(endpoint(), HOST, { perSecond: 40 });
    await stage.cluster.kubectl('rollout', 'restart', 'deployment/gateway', '--namespace', GATEWAYS);
    await rollout(GATEWAYS, 'gateway');
    await eventually(async () => {
      const names = (await podsOf(GATEWAYS)).map(({ metadata }) => metadata.name);
      expect(names.filter((name) => before.includes(name))).toEqual([]);
    }, WAIT);
    const { failures, sent, reopened } = await load.end();
    process.stdout.write(`gateways rolled: ${sent} requests, ${reopened} kept connections reopened\n`);
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(100);
  });

  test('serve on when the node of one of them and of one pod is cut off', async () => {
    const [lost] = stage.cluster.nodes;
    if (lost === undefined) throw new Error('the cluster has two nodes');
    const kept = (await readyPods(SITES)).filter(({ spec }) => spec.nodeName !== lost.name);
    await endFront();
    front = await startFront(' on-marked-down shutdown-sessions');
    await eventually(() => ask(endpoint(), { host: HOST }));
    const during = startLoad(endpoint(), HOST, { perSecond: 20 });
    await lost.cut('all');
    // The front and the other gateway find out by themselves; the cluster needs most of a minute.
    await eventually(async () => {
      expect(await answering()).toEqual(new Set(kept.map(({ metadata }) => metadata.name)));
    }, WAIT);
    const after = startLoad(endpoint(), HOST, { perSecond: 40 });
    const cut = await during.end();
    await stage.cluster.nodesAre({
      [lost.name]: 'Unknown',
      [stage.cluster.nodes[1]?.name ?? '']: 'True',
    });
    const { failures, sent } = await after.end();
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(100);
    // What was on its way through the lost node can't all be sent again.
    process.stdout.write(
      `node cut: ${cut.failures.length} of ${cut.sent} failed, ${cut.reopened} reopened, slowest ${cut.slowest.toFixed(0)} ms: ${cut.failures.join(', ')}\n`,
    );
    expect(cut.failures.length).toBeLessThan(20);
  });
});
