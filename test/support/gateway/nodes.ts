import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../../base/free-port.ts';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';
import { writeProgramImage } from '../kubernetes/image.ts';
import { ip } from '../kubernetes/machine.ts';
import type { ClusterNode } from '../kubernetes/node.ts';
import { ask } from '../proxy/proxy.ts';
import { type LoadTarget, startEdgeLoad } from './edge-load.ts';
import { NameServer } from './name-server.ts';
import { FALLBACK_PORTS, gatewayPods, MACHINE_IMAGE, NODE_PORTS, sitePods } from './pods.ts';
import { GATEWAYS, GatewayStage, SITES } from './stage.ts';

export const SITE = 'acme';
const PORT = 20_001;
const WAIT = { timeoutMs: 180_000, intervalMs: 500 };

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/**
 * Two gateways and two pods of a site on the real nodes of a cluster. The front is Debian's haproxy as a load balancer
 * of connections, which checks whether the gateways are ready. Needs root, nginx and haproxy.
 */
export class NodesStage implements AsyncDisposable {
  readonly stage: GatewayStage;
  /** The name server of the gateways' pods. */
  readonly names: NameServer;
  readonly host = hostOf(SITE);
  /** The port on which the pods of all sites listen. */
  readonly sitePort = PORT;
  readonly #port: number;
  #front: ChildProcess | null = null;

  private constructor(stage: GatewayStage, names: NameServer, port: number) {
    this.stage = stage;
    this.names = names;
    this.#port = port;
  }

  static async start(options: { nodes: number; lostAfter?: number }): Promise<NodesStage> {
    await using stack = new AsyncDisposableStack();
    const stage = stack.use(await GatewayStage.start(options));
    const image = join(stage.folder, 'machine.tar');
    const program = '/bin/busybox';
    await writeProgramImage(image, { name: MACHINE_IMAGE, program, entrypoint: [program] });
    await stage.cluster.importImages(image);
    const names = await NameServer.start(stage.cluster);
    const started = new NodesStage(stage, names, (await freePort('127.0.0.1', 0)) ?? 0);
    stack.defer(() => started.#endFront());
    await stage.deliverInstance();
    await stage.deliverCertificate('tls-platform', '*.example.net');
    await stage.cluster.apply({ apiVersion: 'v1', kind: 'List', items: gatewayPods(names.address) });
    await started.serve(SITE);
    await eventually(() => started.readyPods(GATEWAYS), WAIT);
    await started.#startFront();
    await eventually(() => ask(started.endpoint, { host: started.host }));
    stack.move();
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endFront();
    await this.stage[Symbol.asyncDispose]();
  }

  /** The endpoint of the front. */
  get endpoint() {
    return { address: '127.0.0.1', httpPort: 0, tlsPort: this.#port };
  }

  /** Starts two pods of a site, both on the node `on` as long as it takes pods. Resolves when they are ready. */
  async serve(site: string, on?: ClusterNode): Promise<void> {
    const service = serviceOf(site);
    const document = { kind: 'origin', host: hostOf(site), namespace: SITES, service, port: PORT } as const;
    await this.stage.deliverSite(site, [document]);
    await this.stage.cluster.apply({ apiVersion: 'v1', kind: 'List', items: sitePods(site, PORT, on?.name) });
    await eventually(() => this.readyPods(SITES, service), WAIT);
  }

  /** Starts to send requests through the front and a gateway. */
  load(perSecond: number, site = SITE, options: Parameters<typeof startEdgeLoad>[3] = {}) {
    const { address, tlsPort } = this.endpoint;
    const target: LoadTarget = { address, port: tlsPort, servername: hostOf(site) };
    return startEdgeLoad(() => target, hostOf(site), perSecond, options);
  }

  /** For comparison: starts to send requests straight to the plain Service of a site, through this node. */
  async plainLoad(perSecond: number, through: ClusterNode, site = SITE) {
    const service = ['get', 'service', serviceOf(site), '--namespace', SITES];
    const address = await this.stage.cluster.kubectl(...service, '--output=jsonpath={.spec.clusterIP}');
    await ip(`route replace ${address}/32 via ${through.address}`);
    const target: LoadTarget = { address, port: PORT };
    return startEdgeLoad(() => target, hostOf(site), perSecond);
  }

  async pods(namespace: string, app?: string): Promise<readonly Pod[]> {
    const selection = app === undefined ? [] : ['--selector', `app=${app}`];
    const found = await this.stage.cluster.kubectl(
      ...['get', 'pods', '--namespace', namespace, '--output', 'json', ...selection],
    );
    return JSON.parse(found).items;
  }

  /** The two ready pods of a Deployment; throws if there aren't two. */
  async readyPods(namespace: string, app = namespace === SITES ? serviceOf(SITE) : 'gateway') {
    const ready = (await this.pods(namespace, app)).filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined &&
        status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True'),
    );
    if (ready.length !== 2) throw new Error(`${ready.length} pods of ${app} are ready`);
    return ready;
  }

  /** Resolves when all pods are ready and those that end have ended. */
  async settled(): Promise<void> {
    await eventually(async () => {
      for (const namespace of [SITES, GATEWAYS]) await this.readyPods(namespace);
      const all = [...(await this.pods(SITES, serviceOf(SITE))), ...(await this.pods(GATEWAYS))];
      if (all.length !== 4) throw new Error(`there are ${all.length} pods`);
    }, WAIT);
  }

  /**
   * A node with a gateway and a pod of the site, and the other nodes. There is always such a node, because the test has
   * at most three nodes, and two of each.
   */
  async sharedNode(): Promise<{ node: ClusterNode; others: readonly ClusterNode[] }> {
    const [sites, gateways] = await Promise.all([this.readyPods(SITES), this.readyPods(GATEWAYS)]);
    const names = new Set(gateways.map(({ spec }) => spec.nodeName));
    const found = sites.find(({ spec }) => names.has(spec.nodeName))?.spec.nodeName;
    const node = this.stage.cluster.nodes.find(({ name }) => name === found);
    if (node === undefined) throw new Error('no node has both a gateway and a pod of the site');
    return { node, others: this.stage.cluster.nodes.filter((one) => one !== node) };
  }

  /** The endpoint of the first of these nodes that has a gateway, without the front. */
  async gatewayOn(nodes: readonly ClusterNode[]) {
    const names = new Set((await this.readyPods(GATEWAYS)).map(({ spec }) => spec.nodeName));
    const node = nodes.find(({ name }) => names.has(name));
    if (node === undefined) throw new Error('none of the nodes has a gateway');
    return { address: node.address, httpPort: 0, tlsPort: NODE_PORTS.tls };
  }

  /** Moves CoreDNS to this node. Resolves when a gateway gets an answer from it. */
  async moveNames(node: ClusterNode): Promise<void> {
    await this.names.moveTo(node.name);
    await eventually(async () => {
      if (!(await this.hasNames())) throw new Error('the name server doesn’t answer');
    }, WAIT);
  }

  /** True if a gateway gets an answer from its name server. */
  async hasNames(): Promise<boolean> {
    const [pod] = await this.readyPods(GATEWAYS);
    const program = `require('node:dns').resolve4('gateway.${GATEWAYS}.svc.cluster.local', (error) => process.exit(error ? 1 : 0))`;
    const inside = ['exec', pod?.metadata.name ?? '', '--namespace', GATEWAYS, '--', process.execPath];
    return await this.stage.cluster.kubectl(...inside, '--eval', program).then(
      () => true,
      () => false,
    );
  }

  /** Replaces all pods of a Deployment. Resolves when the replaced ones have ended. */
  async roll(namespace: string, app: string): Promise<void> {
    const before = new Set((await this.pods(namespace, app)).map(({ metadata }) => metadata.name));
    const { cluster } = this.stage;
    await cluster.kubectl('rollout', 'restart', `deployment/${app}`, '--namespace', namespace);
    await eventually(async () => {
      await this.readyPods(namespace, app);
      const old = (await this.pods(namespace, app)).filter(({ metadata }) => before.has(metadata.name));
      if (old.length > 0) throw new Error(`${old.length} pods have not ended`);
    }, WAIT);
  }

  /** Moves all pods away from a node, as before its maintenance. Resolves when the node takes pods again. */
  async drain({ name }: ClusterNode): Promise<void> {
    const { cluster } = this.stage;
    await cluster.kubectl('drain', name, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=180s');
    await this.settled();
    await cluster.kubectl('uncordon', name);
  }

  /** Cuts all nodes off from the API server. Resolves when the cluster lists no pod of the site as ready any more. */
  async cutKubelets(): Promise<void> {
    const { cluster } = this.stage;
    await Promise.all(cluster.nodes.map((node) => node.cut('api')));
    await eventually(async () => {
      const slices = JSON.parse(
        await cluster.kubectl(
          ...['get', 'endpointslices', '--namespace', SITES, '--output', 'json'],
          ...['--selector', `kubernetes.io/service-name=${serviceOf(SITE)}`],
        ),
      ).items as { endpoints?: { conditions: { ready?: boolean } }[] }[];
      const ready = slices.flatMap((slice) => slice.endpoints ?? []).filter((one) => one.conditions.ready);
      if (ready.length > 0) throw new Error(`${ready.length} pods are listed as ready`);
    }, WAIT);
  }

  async healNodes(): Promise<void> {
    await Promise.all(this.stage.cluster.nodes.map((node) => node.heal()));
    await this.stage.cluster.nodesAreReady();
    await this.settled();
  }

  async #endFront(): Promise<void> {
    if (this.#front === null) return;
    const front = this.#front;
    this.#front = null;
    if (front.exitCode !== null || front.signalCode !== null) return;
    const ended = once(front, 'exit');
    front.kill('SIGKILL');
    await ended;
  }

  async #startFront(): Promise<void> {
    const file = join(this.stage.folder, 'haproxy.cfg');
    // A lost node accepts no connection within `timeout connect`, and the second check comes soon after the first. So
    // the connections to the node end within 1.2 s of its loss. A gateway that is only busy may answer late, and one
    // that ends on purpose keeps its connections.
    const serversAt = ({ tls, health }: { tls: number; health: number }, kind: string, more = '') =>
      this.stage.cluster.nodes.map(({ name, address }) => {
        const check = `check port ${health} inter 500ms fastinter 100ms fall 2 rise 1`;
        return `  server ${name}-${kind} ${address}:${tls} ${check} on-marked-down shutdown-sessions${more}`;
      });
    const lines = [
      'defaults',
      '  mode tcp',
      '  timeout connect 300ms',
      '  timeout check 2s',
      '  timeout client 60s',
      '  timeout server 60s',
      '  retries 3',
      '  option redispatch 1',
      'frontend front',
      `  bind 127.0.0.1:${this.#port}`,
      '  default_backend gateways',
      'backend gateways',
      '  option httpchk GET /serving',
      '  http-check disable-on-404',
      '  option allbackups',
      ...serversAt(NODE_PORTS, 'ready'),
      // Used while the cluster, perhaps wrongly, lists no gateway as ready.
      ...serversAt(FALLBACK_PORTS, 'listed', ' backup'),
      '',
    ];
    await writeFile(file, lines.join('\n'));
    this.#front = spawn('haproxy', ['-db', '-f', file], { env: { PATH: PATH_WITH_SBIN }, stdio: 'ignore' });
  }
}

export const serviceOf = (site: string) => `tag-${site}-processing`;
export const hostOf = (site: string) => `${site}-origin.example.net`;
