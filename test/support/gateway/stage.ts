import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../base/free-port.ts';
import type { ProxyEndpoint } from '../../../gitops/appliers/proxy/backend.ts';
import { stopNginx } from '../../../gitops/appliers/proxy/nginx/process.ts';
import { openKubernetes } from '../../../gitops/kubernetes/client/client.ts';
import type { KubernetesClient } from '../../../gitops/kubernetes/client/contract.ts';
import type { InstanceDocument, SiteDocument } from '../../../gitops/kubernetes/delivery/documents.ts';
import { type Delivered, deliverySecret } from '../../../gitops/kubernetes/delivery/secrets.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { ip } from '../kubernetes/machine.ts';
import { NGINX } from '../proxy/nginx.ts';
import { HOP_SECRET } from '../proxy/proxy.ts';

const MAIN = fileURLToPath(new URL('../../../gitops/kubernetes/gateway/main.ts', import.meta.url));
export const INSTANCE = 'test';
export const GATEWAYS = 'gateways';
export const SITES = 'sites';
const LABELS = { 'tagyard/instance': INSTANCE };
const limit = () => AbortSignal.timeout(60_000);

/**
 * A cluster, by default a control plane without nodes. The stage writes Secrets and EndpointSlices to it, as the
 * provisioner and the cluster's controllers would. Addresses of this machine take the place of the pods' addresses.
 * Needs root.
 */
export class GatewayStage {
  readonly cluster: Cluster;
  readonly client: KubernetesClient;
  readonly ca: LocalCa;
  readonly folder: string;
  readonly #owned: AsyncDisposableStack;

  private constructor(
    parts: Pick<GatewayStage, 'cluster' | 'client' | 'ca' | 'folder'>,
    owned: AsyncDisposableStack,
  ) {
    this.cluster = parts.cluster;
    this.client = parts.client;
    this.ca = parts.ca;
    this.folder = parts.folder;
    this.#owned = owned;
  }

  static async start(options: { nodes?: number; lostAfter?: number } = {}): Promise<GatewayStage> {
    await using stack = new AsyncDisposableStack();
    const cluster = stack.use(await Cluster.start({ nodes: 0, ...options }));
    const client = await openKubernetes({ kubeconfig: cluster.kubeconfig });
    stack.defer(() => client.close());
    const folder = await mkdtemp(join(tmpdir(), 'tagyard-gateway-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    // nginx's workers run as another user.
    await chmod(folder, 0o711);
    const ca = await ensureLocalCa(join(folder, 'ca'));
    for (const name of [GATEWAYS, SITES]) await cluster.kubectl('create', 'namespace', name);
    return new GatewayStage({ cluster, client, ca, folder }, stack.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** Gives this machine an address for a pod. It is no loopback address, because an endpoint must not have one. */
  async podAddress(number: number): Promise<string> {
    const { hostname } = new URL(
      await this.cluster.kubectl('config', 'view', '--output', 'jsonpath={.clusters[0].cluster.server}'),
    );
    const address = hostname.replace(/\.1$/, `.${100 + number}`);
    await ip(`addr replace ${address}/32 dev ${this.cluster.id}`);
    return address;
  }

  /** Writes a Secret as the provisioner does. */
  async deliver(name: string, delivered: Delivered): Promise<void> {
    const { labels, type, data } = deliverySecret(delivered);
    const metadata = { name, namespace: GATEWAYS, labels: { ...LABELS, ...labels } };
    await this.client.apply(
      { apiVersion: 'v1', kind: 'Secret', metadata, type, data },
      { manager: 'tests', force: true },
      limit(),
    );
  }

  async deliverSite(site: string, names: SiteDocument['names']): Promise<void> {
    await this.deliver(`site-${site}`, { kind: 'site', document: { version: 1, site, names } });
  }

  async deliverInstance(document: Partial<InstanceDocument> = {}): Promise<void> {
    await this.deliver('instance', {
      kind: 'instance',
      document: {
        version: 1,
        hopSecret: { current: HOP_SECRET },
        trusted: { cloudflare: [], own: [] },
        edge: { scheme: 'http', address: '127.0.0.1', port: 9 },
        ...document,
      },
    });
  }

  async deliverCertificate(name: string, host: string): Promise<void> {
    const paths = await this.ca.pathsFor(host);
    const [cert, key] = await Promise.all([readFile(paths.cert, 'utf8'), readFile(paths.key, 'utf8')]);
    await this.deliver(name, { kind: 'certificate', cert, key });
  }

  async withdraw(name: string): Promise<void> {
    await this.cluster.kubectl('delete', 'secret', name, '--namespace', GATEWAYS);
  }

  /** Delivers a site with an origin, and writes its pods' EndpointSlice. */
  async serve(site: string, port: number, addresses: readonly string[]): Promise<string> {
    const host = `${site}-origin.example.net`;
    const service = `tag-${site}-processing`;
    await this.list(
      service,
      port,
      addresses.map((address) => ({ address })),
    );
    await this.deliverSite(site, [{ kind: 'origin', host, namespace: SITES, service, port }]);
    return host;
  }

  /** Writes a service's EndpointSlice, as the cluster's controller does. */
  async list(
    service: string,
    port: number,
    endpoints: readonly { address: string; ready?: boolean; terminating?: boolean }[],
  ): Promise<void> {
    await this.client.apply(
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: `${service}-tests`,
          namespace: SITES,
          labels: {
            ...LABELS,
            'kubernetes.io/service-name': service,
            'endpointslice.kubernetes.io/managed-by': 'tests',
          },
        },
        addressType: 'IPv4',
        ports: [{ name: 'http', port, protocol: 'TCP' }],
        endpoints: endpoints.map(({ address, ready = true, terminating = false }) => ({
          addresses: [address],
          conditions: { ready, serving: ready, terminating },
        })),
      },
      { manager: 'tests', force: true },
      limit(),
    );
  }

  /** Disposes of the resource together with the stage. */
  own(resource: AsyncDisposable): void {
    this.#owned.use(resource);
  }

  /** A gateway as a process of its own, not started yet. */
  async gateway(name: string, env: NodeJS.ProcessEnv = {}): Promise<GatewayProcess> {
    const gateway = await GatewayProcess.create(this, name, env);
    this.#owned.defer(() => gateway.kill());
    return gateway;
  }
}

/** One gateway: the agent's process, and the nginx that it starts. */
export class GatewayProcess {
  readonly directory: string;
  readonly endpoint: ProxyEndpoint;
  readonly name: string;
  readonly #health: string;
  readonly #env: NodeJS.ProcessEnv;
  #child: ChildProcess | null = null;
  #output = '';

  private constructor(
    parts: Pick<GatewayProcess, 'directory' | 'endpoint' | 'name'> & {
      health: number;
      env: NodeJS.ProcessEnv;
    },
  ) {
    this.directory = parts.directory;
    this.endpoint = parts.endpoint;
    this.name = parts.name;
    this.#health = `http://127.0.0.1:${parts.health}`;
    this.#env = parts.env;
  }

  static async create(stage: GatewayStage, name: string, env: NodeJS.ProcessEnv): Promise<GatewayProcess> {
    const directory = join(stage.folder, name);
    await mkdir(directory, { recursive: true, mode: 0o711 });
    const ports: number[] = [];
    while (ports.length < 4) {
      const port = await freePort('127.0.0.1', 0);
      if (port !== null && !ports.includes(port)) ports.push(port);
    }
    const [httpPort = 0, tlsPort = 0, health = 0, policyPort = 0] = ports;
    return new GatewayProcess({
      directory,
      name,
      endpoint: { address: '127.0.0.1', httpPort, tlsPort },
      health,
      env: {
        PATH: PATH_WITH_SBIN,
        TAGYARD_INSTANCE: INSTANCE,
        GATEWAY_DIR: directory,
        GATEWAY_NAMESPACE: GATEWAYS,
        POD_NAME: name,
        GATEWAY_LISTEN: '127.0.0.1',
        GATEWAY_HTTP_PORT: String(httpPort),
        GATEWAY_TLS_PORT: String(tlsPort),
        GATEWAY_POLICY_PORT: String(policyPort),
        GATEWAY_HEALTH_ADDRESS: '127.0.0.1',
        GATEWAY_HEALTH_PORT: String(health),
        NGINX_BIN: NGINX,
        KUBECONFIG: stage.cluster.kubeconfig,
        EDGE_CA_FILE: stage.ca.caFile,
        ...env,
      },
    });
  }

  /** Starts the agent; resolves when it is ready. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [MAIN], { env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.#child = child;
    await eventually(async () => expectReady(await this.readiness(), this.#output), {
      until: () => child.exitCode !== null,
    });
  }

  /** The status and the text of the readiness probe, or of another path that its server answers. */
  async readiness(path = '/ready'): Promise<{ status: number; text: string }> {
    const response = await fetch(`${this.#health}${path}`, { headers: { connection: 'close' } });
    return { status: response.status, text: await response.text() };
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the agent was not started');
    return pid;
  }

  /** Ends the agent alone with this signal; resolves when it has ended. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /** Ends the agent and nginx at once. */
  async kill(): Promise<void> {
    await this.end('SIGKILL');
    await stopNginx(this.directory);
  }
}

function expectReady({ status, text }: { status: number; text: string }, output: string): void {
  if (status !== 200) throw new Error(`the gateway is not ready: ${text}${output}`);
}
