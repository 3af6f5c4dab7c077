import type { Clock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import { type Log, warner } from '../../../base/log.ts';
import { reviveNginx } from '../../appliers/proxy/nginx/revive.ts';
import type { StartFailure } from '../delivery/report.ts';
import { type Configuration, configurationOf, type DeliveredSecrets } from './configuration.ts';
import { checkPeers } from './connects.ts';
import { GatewayNginx, type GatewayNginxSettings } from './nginx.ts';
import { Peers, type PodEndpoint } from './peers.ts';
import { PeerResolver } from './resolver.ts';
import { Saved } from './saved.ts';
import { START_MS, Starts } from './starts.ts';

const POLL_MS = 50;
const ROTATION_MS = 30_000;
const NOTHING = configurationOf(new Map());

interface AgentDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** What the API server lists of a service (`<namespace>/<name>`); `null`: not known. */
  readonly endpointsOf?: (service: string) => readonly PodEndpoint[] | null;
  /** Scales a Deployment on demand to one pod. Called again, after a pause, while no pod of its service is ready. */
  readonly start?: (namespace: string, deployment: string) => Promise<void>;
}

/**
 * The agent beside nginx in a gateway's pod: it makes nginx serve what was delivered, answers nginx's queries for the
 * addresses of pods, and tests once a second whether the pods accept connections. It keeps what it knew last on its
 * disk.
 */
export class GatewayAgent {
  readonly nginx: GatewayNginx;
  readonly #peers = new Peers();
  readonly #saved: Saved;
  readonly #resolver: PeerResolver;
  readonly #settings: GatewayNginxSettings;
  readonly #deps: AgentDeps;
  readonly #starts: Starts;
  readonly #ended = new AbortController();
  readonly #ports = new Map<string, number>();
  /** Since when each service on demand is known, in monotonic milliseconds. */
  readonly #known = new Map<string, number>();
  /** The time of the last request for each service on demand that has had one, in monotonic milliseconds. */
  readonly #used = new Map<string, number>();
  #configuration: Configuration = NOTHING;
  #restored: DeliveredSecrets = new Map();
  #isServed = false;
  #wasReady = false;
  #reviver: ReturnType<typeof reviveNginx> | null = null;
  #checks: Promise<void> = Promise.resolve();
  #rotation: NodeJS.Timeout | undefined;

  constructor(settings: GatewayNginxSettings, deps: AgentDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.nginx = new GatewayNginx(settings);
    this.#starts = new Starts(deps);
    this.#saved = new Saved(settings.directory);
    this.#resolver = new PeerResolver((service) => this.#lookup(service));
  }

  /** Starts the resolver and the checks of pods, and serves what the last process served, if there is any. */
  async open(): Promise<void> {
    const { resolverPort } = this.#settings;
    const { clock, log } = this.#deps;
    await this.nginx.prepare();
    this.#peers.restore(await this.#saved.peers(), clock.now());
    await this.#resolver.listen(resolverPort);
    this.#restored = await this.#saved.deliveries();
    if (this.#restored.size > 0) {
      await this.deliver(this.#restored).catch((error: Error) =>
        log.warn({ reason: error.message }, 'what was served before the restart can’t be served'),
      );
    }
    await this.nginx.daemon.adopt();
    this.#reviver = reviveNginx(this.nginx.daemon, () => this.nginx.revive(this.#configuration));
    const warn = warner((message) => log.warn({}, `the last known pods can’t be saved: ${message}`));
    this.#checks = checkPeers(this.#peers, clock, {
      signal: this.#ended.signal,
      onRound: () => void this.#saved.savePeers(this.#peers.save()).then(() => warn(null), warn),
    });
    const warnLogs = warner((message) => log.warn({}, `the logs can’t be rotated: ${message}`));
    this.#rotation = setInterval(() => {
      void this.nginx.rotateLogs(clock.date().getTime()).then(() => warnLogs(null), warnLogs);
    }, ROTATION_MS).unref();
  }

  /**
   * Makes nginx serve these Secrets, in place of all that were delivered before. Resolves once it does: to the names of
   * the Secrets that can't be served as delivered, and why. Rejects if none can be served: then nginx continues to
   * serve the earlier ones.
   */
  async deliver(deliveries: DeliveredSecrets): Promise<ReadonlyMap<string, string>> {
    const configuration = configurationOf(deliveries);
    if (configuration.instance === null) {
      throw new RetryableError('there is no Secret of the instance: the provisioner writes it');
    }
    const services = [...configuration.targets.values()].map(({ namespace, service, port }) => {
      const name: string = `${namespace}/${service}`;
      return [name, port] as const;
    });
    this.#configuration = configuration;
    for (const [service, port] of services) {
      this.#ports.set(service, port);
      // The pods of a new name must be known before its first request.
      const endpoints = this.#deps.endpointsOf?.(service);
      if (endpoints) this.list(service, endpoints);
    }
    const { refused } = await this.nginx.serve(configuration);
    this.#isServed = true;
    await this.#saved.saveDeliveries(deliveries);
    const wanted = new Set(services.map(([service]) => service));
    for (const service of [...this.#ports.keys()].filter((one) => !wanted.has(one)))
      this.#ports.delete(service);
    this.#peers.retain(wanted);
    this.#keepUses(configuration.onDemand);
    return new Map([...configuration.faults, ...refused]);
  }

  /** What `open` found on the disk. */
  get restored(): DeliveredSecrets {
    return this.#restored;
  }

  /** What the API server lists of a service (`<namespace>/<name>`). */
  list(service: string, endpoints: readonly PodEndpoint[]): void {
    if (!this.#ports.has(service)) return;
    this.#peers.listed(service, endpoints, this.#deps.clock.now());
    if (this.#peers.hasLasting(service)) this.#starts.ready(service);
  }

  /**
   * For each service on demand (`<namespace>/<name>`) that has had a request: the last one's time, in monotonic
   * milliseconds.
   */
  get requests(): ReadonlyMap<string, number> {
    return this.#used;
  }

  /**
   * All services on demand, as in `requests`: when the last request was, or when this gateway learned of
   * the service, if that is later.
   */
  get uses(): ReadonlyMap<string, number> {
    const uses = [...this.#known].map(
      ([service, since]) => [service, Math.max(since, this.#used.get(service) ?? 0)] as const,
    );
    return new Map(uses);
  }

  /** The services on demand whose last start has failed, and why. */
  get failures(): ReadonlyMap<string, StartFailure> {
    return this.#starts.failures;
  }

  /**
   * The Deployment of a service on demand if it may have a pod, ready or not; `null`: it has none, or the service
   * always runs.
   */
  running(service: string): string | null {
    const mayRun = this.#peers.hasLasting(service) || this.#starts.isAsked(service);
    return mayRun ? (this.#configuration.onDemand.get(service) ?? null) : null;
  }

  /** Call it when the Deployment of a service on demand was scaled to no pod. */
  stopped(service: string): void {
    this.#starts.stopped(service);
  }

  /** The services (`<namespace>/<name>`) whose pods get requests. */
  get services(): ReadonlySet<string> {
    return new Set(this.#ports.keys());
  }

  /**
   * Why the gateway can't take requests yet; empty: it can. At its start, the pods of each service must have been
   * tested, and those of at least one service must accept connections, so that a fault of one site doesn't keep the
   * gateway from serving all others. While the API server is away, pods that are known from before a restart are
   * enough.
   */
  async obstacles(): Promise<string[]> {
    if (!this.#isServed) return ['nothing was delivered yet'];
    if (!(await this.nginx.daemon.isRunning())) return ['nginx doesn’t run'];
    if (this.#wasReady) return [];
    if (!this.#arePodsKnown) return ['the API server has not listed the pods yet'];
    const proofs = [...this.#ports.keys()].map((service) => [service, this.#peers.proof(service)] as const);
    const some = proofs.some(([, proof]) => proof === 'accepts');
    const untested = proofs.filter(([, proof]) => proof === 'unknown' || (proof === 'fails' && !some));
    this.#wasReady = untested.length === 0;
    return untested.map(([service]) => `no pod of ${service} is known to accept connections`);
  }

  get #arePodsKnown(): boolean {
    const services = [...this.#ports];
    const isListed = (service: string) => this.#deps.endpointsOf?.(service) !== null;
    const isSaved = (service: string, port: number) => this.#peers.addresses(service, port).length > 0;
    return services.length === 0 || services.some((one) => isListed(one[0]) || isSaved(...one));
  }

  /** Ends nginx. Requests in flight may take up to `graceMs`; meanwhile, nginx still gets the addresses of pods. */
  async end(graceMs: number): Promise<void> {
    this.#reviver?.stop();
    clearInterval(this.#rotation);
    await this.nginx.end(graceMs);
    await this.release();
  }

  /** Ends everything but nginx. */
  async release(): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#reviver?.stop();
    clearInterval(this.#rotation);
    this.nginx.daemon.release();
    this.#ended.abort();
    await this.#checks;
    await this.#resolver.close();
  }

  async #lookup(service: string): Promise<readonly string[]> {
    const port = this.#ports.get(service);
    if (port === undefined) return [];
    const deployment = this.#configuration.onDemand.get(service);
    if (deployment === undefined) return this.#peers.addresses(service, port);
    this.#used.set(service, this.#deps.clock.now());
    // A pod that is being stopped may still accept connections, but isn't enough, because it soon ends.
    if (!this.#peers.hasLasting(service)) await this.#awaitFirst(service, deployment);
    return this.#peers.addresses(service, port);
  }

  #keepUses(onDemand: Configuration['onDemand']): void {
    for (const service of [...this.#known.keys()].filter((one) => !onDemand.has(one))) {
      this.#known.delete(service);
      this.#used.delete(service);
      this.#starts.forget(service);
    }
    for (const service of onDemand.keys()) {
      if (!this.#known.has(service)) this.#known.set(service, this.#deps.clock.now());
    }
  }

  async #awaitFirst(service: string, deployment: string): Promise<void> {
    const { clock, start } = this.#deps;
    const namespace = service.slice(0, service.indexOf('/'));
    const deadline = clock.now() + START_MS;
    await this.#starts.start(service, async () => await start?.(namespace, deployment));
    while (!this.#peers.hasLasting(service) && clock.now() < deadline && !this.#ended.signal.aborted) {
      await clock.sleep(POLL_MS, { signal: this.#ended.signal });
      // A request that waits is a use: a pod that starts slowly must not count as unused once it is ready.
      this.#used.set(service, clock.now());
    }
    if (this.#peers.hasLasting(service)) this.#starts.ready(service);
    else if (!this.#ended.signal.aborted) this.#starts.late(service);
  }
}
