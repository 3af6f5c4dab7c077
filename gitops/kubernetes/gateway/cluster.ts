import type { Clock } from '../../../base/clock.ts';
import { type Log, warner } from '../../../base/log.ts';
import type { KubernetesClient, Watched } from '../client/contract.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import { deliveryDigest, formatReport, REPORT } from '../delivery/report.ts';
import { DELIVERY_LABEL, type Delivered, readDelivered } from '../delivery/secrets.ts';
import type { GatewayAgent } from './agent.ts';
import type { PodEndpoint } from './peers.ts';
import { ServiceSlices } from './slices.ts';
import { ReportedUses } from './uses.ts';

const LEASE_SECONDS = 15;
const RENEW_MS = 5_000;
const MANAGER = 'tagyard-gateway';
/** Changes that come within this time are served by one generation. */
const GATHER_MS = 50;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

interface FeedDeps {
  readonly client: KubernetesClient;
  /** The gateway's namespace: that of the Secrets and of its Lease. */
  readonly namespace: string;
  readonly instance: string;
  /** The Lease has the pod's name. If the uid is known, the cluster deletes the Lease with the pod. */
  readonly pod: { readonly name: string; readonly uid?: string | undefined };
  /** A preview server on demand is stopped after this time without a request, milliseconds. */
  readonly idleMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Watches the cluster, gives an agent the Secrets and endpoints, and reports in a Lease what the agent serves. */
export class ClusterFeed {
  readonly #deps: FeedDeps;
  readonly #secrets: Watched;
  readonly #slices: ServiceSlices;
  /** The Leases of all gateways. */
  readonly #reports: Watched;
  readonly #uses = new ReportedUses();
  readonly #ended = new AbortController();
  /** The last content of each Secret that could be read. `version` is `null` if an earlier process has read it. */
  readonly #readable = new Map<string, { readonly version: string | null; readonly delivered: Delivered }>();
  #digest = '';
  #refused: ReadonlyMap<string, string> = new Map();
  #work: Promise<unknown> = Promise.resolve();
  #agent: GatewayAgent | null = null;

  constructor(deps: FeedDeps) {
    const { client, namespace, instance } = deps;
    this.#deps = deps;
    const ours = `tagyard/instance=${instance}`;
    const kinds = `${DELIVERY_LABEL} in (site,certificate,instance)`;
    this.#secrets = client.watched({ kind: 'Secret', namespace, labels: `${ours},${kinds}` });
    this.#slices = new ServiceSlices(client.watched({ kind: 'EndpointSlice', labels: ours }));
    this.#reports = client.watched({
      kind: 'Lease',
      namespace,
      labels: `${ours},${DELIVERY_LABEL}=${REPORT}`,
    });
  }

  /** What the API server lists of a service; `null`: not known yet. */
  endpointsOf(service: string): PodEndpoint[] | null {
    return this.#slices.endpointsOf(service);
  }

  /** Scales a Deployment without pods to one pod. */
  async start(namespace: string, deployment: string): Promise<void> {
    // The other gateways must know of the request first: otherwise they would stop the pod as unused.
    if (this.#agent !== null) await this.#renew(this.#agent);
    await this.#scale(namespace, deployment, 1);
  }

  async #scale(namespace: string, deployment: string, replicas: 0 | 1): Promise<void> {
    const address = { kind: 'Deployment', namespace, name: deployment, subresource: 'scale' } as const;
    const patch = [{ op: 'replace', path: '/spec/replicas', value: replicas }];
    const scale = await this.#deps.client.patch(address, patch, this.#ended.signal);
    if (scale === null) throw new Error(`there is no Deployment ${namespace}/${deployment}`);
  }

  /**
   * Gives the agent all changes until `end`. After an error it tries again; meanwhile, the agent serves what it has.
   */
  follow(agent: GatewayAgent): void {
    this.#agent = agent;
    for (const [name, delivered] of agent.restored) this.#readable.set(name, { version: null, delivered });
    this.#work = Promise.all([
      this.#slices.follow(agent, this.#ended.signal),
      this.#followSecrets(agent),
      this.#report(agent),
      this.#stopUnused(agent),
    ]);
  }

  async end(): Promise<void> {
    this.#ended.abort(new Error('the gateway ends'));
    await this.#work;
    await Promise.all([this.#secrets.close(), this.#slices.close(), this.#reports.close()]);
  }

  async #followSecrets(agent: GatewayAgent): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#ended;
    const changes = this.#secrets.changes(signal)[Symbol.asyncIterator]();
    await this.#secrets.ready(signal).catch(() => undefined);
    const warn = warner((message) => log.warn({}, `what was delivered can’t be served: ${message}`));
    let retryMs = FIRST_RETRY_MS;
    let next = changes.next();
    while (!signal.aborted) {
      const failed = await this.#deliver(agent).then(
        () => warn(null),
        (error: unknown) => {
          warn(error);
          return true;
        },
      );
      const retry = failed
        ? clock.sleep(retryMs, { signal, ref: false })
        : new Promise<never>(() => undefined);
      retryMs = failed ? Math.min(2 * retryMs, LONGEST_RETRY_MS) : FIRST_RETRY_MS;
      const result = await Promise.race([next, retry]);
      if (result === undefined) continue;
      if (result.done) return;
      await clock.sleep(GATHER_MS, { signal, ref: false });
      next = changes.next();
    }
  }

  async #deliver(agent: GatewayAgent): Promise<void> {
    const secrets = [...this.#secrets.objects.values()].sort(byAge);
    const digest = deliveryDigest(secrets);
    if (digest === this.#digest) return;
    const { deliveries, faults } = this.#read(secrets);
    const refused = await agent.deliver(deliveries);
    this.#refused = new Map([...faults, ...refused]);
    this.#digest = digest;
    if (this.#refused.size > 0) {
      this.#deps.log.warn(
        { refused: Object.fromEntries(this.#refused) },
        'some of what was delivered is not served',
      );
    }
    await this.#renew(agent).catch(() => undefined);
  }

  /** In place of a Secret that can't be read, its last content that could be read is used. */
  #read(secrets: readonly KubernetesObject[]) {
    const deliveries = new Map<string, Delivered>();
    const faults = new Map<string, string>();
    for (const secret of secrets) {
      const { name, resourceVersion: version = '' } = secret.metadata;
      let known = this.#readable.get(name);
      try {
        if (known?.version !== version) known = { version, delivered: readDelivered(secret) };
        this.#readable.set(name, known);
      } catch (error) {
        faults.set(name, error instanceof Error ? error.message : String(error));
      }
      if (known !== undefined) deliveries.set(name, known.delivered);
    }
    const names = new Set(secrets.map(({ metadata }) => metadata.name));
    for (const name of this.#readable.keys()) if (!names.has(name)) this.#readable.delete(name);
    return { deliveries, faults };
  }

  /** Stops the preview servers for which no gateway has had a request within `idleMs`. Each gateway does this. */
  async #stopUnused(agent: GatewayAgent): Promise<void> {
    const { clock, log, idleMs } = this.#deps;
    const { signal } = this.#ended;
    const warn = warner((message) => log.warn({}, `an unused preview server can’t be stopped: ${message}`));
    await this.#reports.ready(signal).catch(() => undefined);
    while (!signal.aborted) {
      // While the reports of the other gateways can't be read, those gateways may have had requests.
      if (this.#reports.fault === null) {
        await this.#stopIdle(agent, clock.now() - idleMs).then(
          () => warn(null),
          (error) => signal.aborted || warn(error),
        );
      }
      await clock.sleep(this.#everyMs, { signal, ref: false });
    }
  }

  /** Stops the preview servers that have had no request after `since` (monotonic milliseconds). */
  async #stopIdle(agent: GatewayAgent, since: number): Promise<void> {
    const failures: unknown[] = [];
    const reported = this.#uses.latest(this.#reports.objects.values(), this.#deps.clock.now());
    for (const [service, used] of agent.uses) {
      const latest = Math.max(used, reported.get(service) ?? used);
      const deployment = latest < since ? agent.running(service) : null;
      if (deployment === null) continue;
      const namespace = service.slice(0, service.indexOf('/'));
      await this.#scale(namespace, deployment, 0).then(
        () => agent.stopped(service),
        (error: unknown) => failures.push(error),
      );
    }
    if (failures.length > 0) throw failures[0];
  }

  /** The pause between reports: so short that other gateways learn of a request before they stop its server. */
  get #everyMs(): number {
    return Math.min(RENEW_MS, this.#deps.idleMs / 3);
  }

  /** By service: how many seconds ago its last request was. Requests longer ago than the idle time need no report. */
  #recentUses(agent: GatewayAgent): Record<string, number> {
    const now = this.#deps.clock.now();
    const recent = [...agent.requests].filter(([, used]) => now - used <= this.#deps.idleMs);
    // Rounded down, so that no use is reported as earlier than it was.
    return Object.fromEntries(recent.map(([service, used]) => [service, Math.floor((now - used) / 1_000)]));
  }

  async #report(agent: GatewayAgent): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#ended;
    const warn = warner((message) => log.warn({}, `the Lease can’t be renewed: ${message}`));
    while (!signal.aborted) {
      await this.#renew(agent).then(
        () => warn(null),
        (error) => signal.aborted || warn(error),
      );
      await clock.sleep(this.#everyMs, { signal, ref: false });
    }
  }

  async #renew(agent: GatewayAgent): Promise<void> {
    const { client, namespace, instance, pod, clock } = this.#deps;
    const report = {
      delivered: this.#digest,
      generation: (await agent.nginx.daemon.servedVersion()) ?? '',
      ready: (await agent.obstacles()).length === 0,
      refused: Object.fromEntries(this.#refused),
      unused: this.#recentUses(agent),
      failed: Object.fromEntries(agent.failures),
    };
    const lease: KubernetesObject = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: pod.name,
        namespace,
        labels: { 'tagyard/instance': instance, [DELIVERY_LABEL]: REPORT },
        annotations: formatReport(report),
        ...(pod.uid === undefined
          ? {}
          : { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid }] }),
      },
      spec: {
        holderIdentity: pod.name,
        leaseDurationSeconds: LEASE_SECONDS,
        renewTime: clock.date().toISOString().replace('Z', '000Z'),
      },
    };
    const limited = AbortSignal.any([this.#ended.signal, AbortSignal.timeout(RENEW_MS)]);
    await client.apply(lease, { manager: MANAGER, force: true }, limited);
  }
}

/** Orders Secrets by age, the oldest first: of two Secrets with the same hostname, the older one keeps it. */
function byAge({ metadata: a }: KubernetesObject, { metadata: b }: KubernetesObject): number {
  const [first, second] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''];
  return first === second ? (a.name < b.name ? -1 : 1) : first < second ? -1 : 1;
}
