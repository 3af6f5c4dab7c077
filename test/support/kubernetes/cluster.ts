import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { KUBERNETES } from '../components.ts';
import { eventually } from '../eventually.ts';
import { signal } from '../signal.ts';
import { metricsServer, nameServer } from './addons.ts';
import { type ApiRequest, readAuditLog } from './audit-log.ts';
import { takeNumber } from './cluster-number.ts';
import { apiServerFlags, clientFlags, controllerFlags, etcdFlags, type Flags } from './control-plane.ts';
import { writeProgramImage } from './image.ts';
import { ip, Part, removeGroups, run } from './machine.ts';
import { type ClusterNetwork, ClusterNode, PAUSE_IMAGE } from './node.ts';
import { kubeconfigOf, Pki } from './pki.ts';
import { simulatedNodes } from './simulated-nodes.ts';

const API_PORT = 6443;
/** Debian's busybox-static. */
const BUSYBOX = '/bin/busybox';
/** Generous: the first start after a build reads the programs from disk. */
const START = { timeoutMs: 180_000, intervalMs: 200 };

interface ClusterOptions {
  readonly nodes?: number;
  /** metrics-server runs, too, so that an HPA scales. */
  readonly metrics?: boolean;
  /** This many further nodes, on which nothing runs. */
  readonly simulated?: number;
  /** A node that says nothing for this many seconds counts as lost; default: as Kubernetes has it. */
  readonly lostAfter?: number;
}

/** Kubernetes' default. */
const LOST_AFTER = 50;

/**
 * A Kubernetes cluster on this machine: etcd, API server, controllers and scheduler as processes, and nodes with real
 * kubelets and containers. Needs root. Names, addresses and control groups have the number of the cluster in them, so
 * several run at once. It ends with this process.
 */
export class Cluster {
  /** The beginning of all names that it makes on the machine. */
  readonly id: string;
  /** State, logs and keys; removed at the end. */
  readonly folder: string;
  /** What the administrator connects with. */
  readonly kubeconfig: string;
  readonly nodes: readonly ClusterNode[];
  readonly #network: ClusterNetwork;
  /** The URL of etcd. */
  readonly store: string;
  readonly #parts: Part[] = [];
  #controllers: Part | undefined;
  #apiServer: Part | undefined;
  #owned = new AsyncDisposableStack();

  private constructor(network: ClusterNetwork) {
    this.#network = network;
    this.id = network.id;
    this.folder = network.folder;
    this.store = `http://${network.nodes}.1:2379`;
    this.kubeconfig = join(network.folder, 'admin.kubeconfig');
    this.nodes = Array.from({ length: network.count }, (_, index) => new ClusterNode(network, index + 1));
  }

  /** Resolves when all nodes are ready. Without nodes it is a control plane: objects are kept, and no pod runs. */
  static async start({
    nodes = 2,
    metrics = false,
    simulated = 0,
    lostAfter = LOST_AFTER,
  }: ClusterOptions = {}): Promise<Cluster> {
    await using stack = new AsyncDisposableStack();
    const number = takeNumber(stack);
    const id = `tgk${number}`;
    // A run that was killed may have left traces; its processes ended with it.
    await removeTraces(id);
    const folder = await mkdtemp(join(tmpdir(), `${id}-`));
    stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    stack.defer(() => removeTraces(id));
    await mkdir(join(folder, 'pki'));
    const pki = await Pki.create(join(folder, 'pki'));
    const machine = `198.18.${number}.1`;
    const server = `https://${machine}:${API_PORT}`;
    const cluster = new Cluster({
      id,
      folder,
      programs: KUBERNETES,
      bridge: `${id}-bridge`,
      nodes: `198.18.${number}`,
      pods: `10.${128 + number}`,
      dns: machine,
      count: nodes,
      lostAfter,
      pki,
      writeKubeconfig: (name, pair) => writeJson(join(folder, name), kubeconfigOf(server, pki, pair)),
    });
    stack.defer(() => cluster.#endParts());
    await cluster.#startControlPlane(`10.${192 + number}`);
    if (metrics) await cluster.#startMetrics();
    if (simulated > 0) await cluster.#startSimulated(simulated);
    await cluster.#startNodes();
    cluster.#owned = stack.move();
    return cluster;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** `kubectl` as the administrator. */
  kubectl(...args: string[]): Promise<string> {
    return run(join(this.#network.programs, 'kubectl'), '--kubeconfig', this.kubeconfig, ...args);
  }

  /** Another of the cluster's programs, such as `kube-score`. */
  program(name: string, ...args: string[]): Promise<string> {
    return run(join(this.#network.programs, name), ...args);
  }

  /** Applies an object, or a list of them. */
  async apply(object: object): Promise<void> {
    const file = await writeJson(join(this.folder, 'applied.json'), object);
    await this.kubectl('apply', '--filename', file);
  }

  /** Creates an object that doesn't exist yet, as a program other than the provisioner would. */
  async create(object: object): Promise<void> {
    const file = await writeJson(join(this.folder, 'created.json'), object);
    await this.kubectl('create', '--filename', file);
  }

  /** The requests that the API server has answered, by its audit log. */
  requests(): ApiRequest[] {
    return readAuditLog(join(this.folder, 'audit.log'));
  }

  /** The id of the API server's process. */
  get apiServerPid(): number {
    return this.#apiServer?.pid ?? 0;
  }

  /** Imports the images of a file of `docker save` into every node. */
  async importImages(file: string): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.importImages(file)));
  }

  /** Ends the API server, and starts it again after `meanwhile`. */
  async restartApiServer(meanwhile: () => Promise<unknown> = async () => undefined): Promise<void> {
    await this.#apiServer?.end();
    await meanwhile();
    this.#apiServer?.start();
    await this.#eventually(() => this.kubectl('get', '--raw', '/readyz'));
  }

  /** Does `work` while no controller sees what changes. */
  async withoutControllers(work: () => Promise<unknown>): Promise<void> {
    const pid = this.#controllers?.pid ?? 0;
    signal(pid, 'SIGSTOP');
    try {
      await work();
    } finally {
      signal(pid, 'SIGCONT');
    }
  }

  /** Imports the image of a `docker save` file as `<repository>@<digest>`. Returns the digest: `sha256:…`. */
  async importByDigest(file: string, repository: string): Promise<string> {
    const digests = await Promise.all(this.nodes.map((node) => node.importByDigest(file, repository)));
    return digests[0] ?? '';
  }

  async #startControlPlane(services: string): Promise<void> {
    const { folder, bridge, nodes, lostAfter, pki, writeKubeconfig, id } = this.#network;
    const machine = `${nodes}.1`;
    // The bridge has a namespace of its own: on the machine itself, Docker's FORWARD chain would drop its packets.
    await ip(`netns add ${bridge}`);
    await ip(`link add ${id} type veth peer name machine netns ${bridge}`);
    await ip(`addr add ${machine}/24 dev ${id}`);
    await ip(`link set ${id} up`);
    await ip('link add switch type bridge', bridge);
    await ip('link set switch up', bridge);
    await ip('link set machine master switch up', bridge);

    const server = await pki.issue('kube-apiserver', {
      subject: 'CN=kube-apiserver',
      ips: [machine, `${services}.0.1`],
      dns: ['kubernetes.default.svc'],
    });
    const admin = await pki.issue('admin', { subject: 'O=system:masters, CN=admin' });
    await writeKubeconfig('admin.kubeconfig', admin);
    const tokens = await pki.issue('service-accounts', { subject: 'CN=service-accounts' });
    const policy = await writeJson(join(folder, 'audit-policy.json'), {
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived', 'ResponseStarted'],
      rules: [{ level: 'Metadata' }],
    });
    const { store } = this;
    this.#start('etcd', etcdFlags(join(folder, 'etcd'), store, `http://${machine}:2380`));
    this.#apiServer = this.#start('kube-apiserver', {
      ...apiServerFlags({ server, admin, tokens, ca: pki.caFile }),
      'etcd-servers': store,
      'bind-address': machine,
      'secure-port': API_PORT,
      'service-cluster-ip-range': `${services}.0.0/16`,
      'audit-policy-file': policy,
      'audit-log-path': join(folder, 'audit.log'),
      // In megabytes: large, because only one file of the log is read.
      'audit-log-maxsize': 4_096,
    });
    await this.#eventually(() => this.kubectl('get', '--raw', '/readyz'));
    const client = clientFlags(this.kubeconfig, machine);
    this.#controllers = this.#start('kube-controller-manager', {
      ...client,
      ...controllerFlags({ tokens, ca: pki.caFile }, { lostAfter }),
    });
    this.#start('kube-scheduler', client);
    this.#start('coredns', await nameServer(this.#network));
  }

  async #startMetrics(): Promise<void> {
    const { objects, flags } = await metricsServer(this.#network);
    this.#start('metrics-server', flags);
    await this.apply(objects);
  }

  async #startSimulated(count: number): Promise<void> {
    const { objects, flags } = await simulatedNodes(this, count);
    await this.apply(objects);
    this.#start('kwok', flags);
  }

  async #startNodes(): Promise<void> {
    if (this.nodes.length === 0) return;
    const pause = join(this.#network.folder, 'pause.tar');
    await writeProgramImage(pause, {
      name: PAUSE_IMAGE,
      program: BUSYBOX,
      entrypoint: ['/bin/busybox', 'sleep', '2147483647'],
    });
    await Promise.all(this.nodes.map((node) => node.create()));
    await this.importImages(pause);
    await this.nodesAreReady();
  }

  /** Resolves when every node is ready. */
  async nodesAreReady(): Promise<void> {
    await this.nodesAre(Object.fromEntries(this.nodes.map(({ name }) => [name, 'True'])));
  }

  /** Resolves when the condition `Ready` of the nodes is as given, by their names. */
  async nodesAre(wanted: Readonly<Record<string, 'True' | 'False' | 'Unknown'>>): Promise<void> {
    const each =
      "jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=='Ready')].status} {end}";
    await this.#eventually(async () => {
      const lines = (await this.kubectl('get', 'nodes', '--output', each)).split(' ').filter(Boolean);
      const found = Object.fromEntries(lines.map((line) => line.split('=')));
      if (!isDeepStrictEqual(found, wanted)) {
        throw new Error(`the conditions Ready of the nodes: ${lines.join(', ')}`);
      }
    });
  }

  /** `eventually`, but it ends as soon as a part of the control plane has ended. */
  async #eventually(probe: () => Promise<unknown>): Promise<void> {
    const isEnded = () => this.#parts.some((part) => !part.isRunning);
    await eventually(probe, { ...START, until: isEnded }).catch((error: unknown) => {
      for (const part of this.#parts) part.check();
      throw error;
    });
  }

  #start(name: string, flags: Flags): Part {
    const { programs, folder } = this.#network;
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const part = new Part({ log: join(folder, `${name}.log`), argv: [join(programs, name), ...args] });
    this.#parts.push(part);
    return part;
  }

  async #endParts(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    await Promise.all(this.#parts.map((part) => part.end()));
  }
}

/** Removes the namespaces, the interface and the control groups of a cluster whose processes have ended. */
async function removeTraces(id: string): Promise<void> {
  const names = (await run('ip', 'netns', 'list')).split('\n').map((line) => line.split(' ')[0] ?? '');
  for (const name of names.filter((one) => one.startsWith(`${id}-`))) await ip(`netns del ${name}`);
  await ip(`link del ${id}`).catch(() => undefined);
  await removeGroups(`${id}-`);
}

async function writeJson(path: string, value: unknown): Promise<string> {
  await writeFile(path, JSON.stringify(value));
  return path;
}
