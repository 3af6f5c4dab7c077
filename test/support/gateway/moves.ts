import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { EMULATOR_ZONE } from '../cloudflare/emulator.ts';
import { eventually } from '../eventually.ts';
import { importKeptServer } from '../kubernetes/kept-server.ts';
import { type Host, TwoHosts } from '../kubernetes/two-hosts.ts';
import { startEdgeLoad } from './edge-load.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage } from './stage.ts';

const WAIT = { timeoutMs: 180_000, intervalMs: 500 };

/**
 * Two hosts (a machine, and a cluster with a gateway), and a site that moves between the two. Needs root and nginx.
 */
export class MoveStage implements AsyncDisposable {
  readonly hosts: TwoHosts;
  readonly #gateway: GatewayProcess;
  readonly #machinePort: number;
  readonly #startCluster: () => Promise<void>;
  readonly #owned: AsyncDisposableStack;

  private constructor(
    hosts: TwoHosts,
    places: { gateway: GatewayProcess; machinePort: number; startCluster: () => Promise<void> },
    owned: AsyncDisposableStack,
  ) {
    this.hosts = hosts;
    this.#gateway = places.gateway;
    this.#machinePort = places.machinePort;
    this.#startCluster = places.startCluster;
    this.#owned = owned;
  }

  /** Resolves when the site is served by the machine. */
  static async start(): Promise<MoveStage> {
    await using stack = new AsyncDisposableStack();
    const stage = stack.use(await GatewayStage.start({ nodes: 1 }));
    const image = await importKeptServer(stage.cluster);
    // Longer than `load` keeps a resolved address.
    const hosts = stack.use(await TwoHosts.open(image, { DRAIN_SECONDS: '2' }));
    const tls = join(hosts.folder, 'tls');
    await mkdir(tls);
    const pair = await stage.ca.pathsFor(`*.${EMULATOR_ZONE}`);
    await cp(pair.cert, join(tls, `_.${EMULATOR_ZONE}.pem`));
    await cp(pair.key, join(tls, `_.${EMULATOR_ZONE}.key`));
    const machinePort = await hosts.startMachine();
    const startCluster = () =>
      hosts.startCluster({
        KUBECONFIG: stage.cluster.kubeconfig,
        KUBERNETES_GATEWAY_NAMESPACE: GATEWAYS,
        TLS_DIR: tls,
      });
    await startCluster();
    await hosts.commitOthers();
    const gateway = await stage.gateway('gateway-1');
    await gateway.start();
    await hosts.moveTo('tag-1');
    await eventually(() => hosts.expectReadyOn('tag-1', ['origin']), WAIT);
    return new MoveStage(hosts, { gateway, machinePort, startCluster }, stack.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** Resolves when the site is served by this host, and the other one has removed it. */
  async move(to: Host): Promise<void> {
    await this.hosts.moveTo(to);
    await this.isReadyOn(to);
    const from = to === 'tag-1' ? 'tag-2' : 'tag-1';
    await eventually(async () => {
      expect((await this.hosts.shown(from))?.reason ?? 'Removed').toBe('Removed');
    }, WAIT);
  }

  isReadyOn(host: Host): Promise<void> {
    return eventually(() => this.hosts.expectReadyOn(host, ['origin']), WAIT);
  }

  async restartProvisionerOfCluster(meanwhile: () => Promise<unknown>): Promise<void> {
    await this.hosts.killProvisioner('tag-2');
    await meanwhile();
    await this.#startCluster();
  }

  /** Sends requests to the host that the name leads to. Like the edge, it keeps an address for up to a second. */
  async load(perSecond: number) {
    const currentHost = async () => this.hosts.hostIn(await this.hosts.records(), 'origin');
    let known: Host | undefined = await currentHost();
    const seen = new Set([known]);
    let isDone = false;
    const following = eventually(
      async () => {
        known = await currentHost();
        seen.add(known);
        if (!isDone) throw new Error('the load has not ended');
      },
      { timeoutMs: 600_000, intervalMs: 200 },
    );
    const { origin } = this.hosts.manifest.hostnames;
    const load = startEdgeLoad(
      () => {
        const port = known === 'tag-1' ? this.#machinePort : this.#gateway.endpoint.tlsPort;
        return { address: '127.0.0.1', port, servername: origin };
      },
      origin,
      perSecond,
    );
    return {
      now: load.now,
      /** The hosts that the name has led to. */
      seen,
      async end() {
        isDone = true;
        await following;
        return await load.end();
      },
    };
  }
}
