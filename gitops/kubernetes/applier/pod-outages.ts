import { type Clock, systemClock } from '../../../base/clock.ts';
import { limit } from '../../../base/limit.ts';
import { type Log, warner } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import { counted } from '../../../base/text.ts';
import { CONTAINER_ROLES } from '../../../sites/manifest/containers.ts';
import { addressOf, objectKey } from '../client/address.ts';
import type { KubernetesClient } from '../client/contract.ts';
import type { KubernetesObject, ObjectAddress } from '../client/kinds.ts';
import { objectName, podSelector } from './objects/names.ts';
import { newestPodFault, podRefusal } from './rollout.ts';
import type { Copies } from './state/copies.ts';
import { deploymentState } from './state/deployment.ts';
import { type LostPod, lostPod } from './state/lost-pod.ts';
import type { WantedSpecs } from './state/wanted-specs.ts';

/** A new pod may be ready by then: no read is needed. */
const CONFIRM_MS = 2_000;
/** How often the pods are read during an outage. */
const INTERVAL_MS = 5_000;
/** An outage ends after this long with all pods ready. Management, which reads every 5 s, therefore sees each one. */
const SETTLED_MS = 15_000;
const READS_AT_ONCE = 8;
/** Pods that are still not ready after this long are said not to start. An image may be pulled to another node first. */
const START_MS = 60_000;
/** How many lost pods a text names. */
const MOST_NAMED = 3;

interface Outage {
  readonly site: string;
  readonly fault: string;
  /** Since when all pods are ready again, by the monotonic clock; `null`: they aren't. */
  readonly readySince: number | null;
}

interface PodOutagesDeps {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly wanted: WantedSpecs;
  readonly identity: Identity;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly clock?: Clock;
}

/**
 * Says which pods served and don't any more, or can't start beside others. It changes nothing: nodes probe the pods, and
 * restart those that fail. Pods are read only while a Deployment that was rolled out has fewer ready ones than it should
 * have.
 */
export class PodOutages {
  readonly #deps: PodOutagesDeps;
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  /** By `<namespace>/<name>` of the Deployment. */
  readonly #outages = new Map<string, Outage>();
  /** The Deployments whose pods are read; true: one has changed since its last read began. */
  readonly #followed = new Map<string, boolean>();
  readonly #reads = limit(READS_AT_ONCE);
  readonly #warn: (error: unknown) => void;

  constructor(deps: PodOutagesDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#warn = warner((message) =>
      deps.log.warn({}, `whether pods serve can’t be read, and is read again: ${message}`),
    );
    deps.copies.onChange('Deployment', (address) => this.#note(address), this.#ended.signal);
  }

  /** Which pods of the site don't serve, for people; `null`: all do. The text stays the same during an outage. */
  faultOf(site: string): string | null {
    const faults = [...this.#outages.values()].flatMap((one) => (one.site === site ? [one.fault] : []));
    return faults.length === 0
      ? null
      : `${faults.sort().join('; ')}. This ends after ${SETTLED_MS / 1000} s with all pods ready`;
  }

  /** The site's Deployments for visitors of which a pod serves. */
  serving(site: string): ObjectAddress[] {
    return [...this.#deps.copies.of('Deployment')].flatMap((one) =>
      one.metadata.labels?.['tagyard/site'] === site &&
      one.metadata.name === objectName(site, 'processing') &&
      deploymentState(one).available > 0
        ? [addressOf(one)]
        : [],
    );
  }

  close(): void {
    this.#ended.abort();
  }

  /** `null`: any Deployment may have changed. */
  #note(address: ObjectAddress | null): void {
    const { copies } = this.#deps;
    const changed = address === null ? [...copies.of('Deployment')].map(addressOf) : [address];
    for (const one of changed) {
      const key = objectKey(one);
      if (this.#followed.has(key)) this.#followed.set(key, true);
      else if (this.#outages.has(key) || lacksPods(copies.find(one))) void this.#follow(key, one);
    }
  }

  /** Reads the Deployment's pods, and reads them again until there is no outage. */
  async #follow(key: string, address: ObjectAddress): Promise<void> {
    const { signal } = this.#ended;
    const { copies } = this.#deps;
    const beganAt = this.#clock.now();
    this.#followed.set(key, false);
    try {
      await this.#clock.sleep(CONFIRM_MS, { signal, ref: false });
      while (!signal.aborted) {
        this.#followed.set(key, false);
        const isRead = await this.#reads(() => this.#read(key, address, beganAt)).then(
          () => {
            this.#warn(null);
            return true;
          },
          (error: unknown) => {
            if (!signal.aborted) this.#warn(error);
            return false;
          },
        );
        const isOver = isRead && !this.#outages.has(key) && !lacksPods(copies.find(address));
        if (isOver && this.#followed.get(key) === false) return;
        if (!isOver) await this.#clock.sleep(INTERVAL_MS, { signal, ref: false });
      }
    } finally {
      this.#followed.delete(key);
    }
  }

  /** `beganAt`: since when pods are missing, by the monotonic clock. */
  async #read(key: string, address: ObjectAddress, beganAt: number): Promise<void> {
    const { client, copies, identity } = this.#deps;
    const deployment = copies.find(address);
    const known = this.#outages.get(key);
    if (deployment === undefined) {
      this.#outages.delete(key);
      return;
    }
    if (known === undefined && !lacksPods(deployment)) return;
    const { namespace = null, labels: { 'tagyard/site': site = '' } = {} } = deployment.metadata;
    const role = CONTAINER_ROLES.find((one) => objectName(site, one) === address.name);
    if (namespace === null || role === undefined) return;
    const selector = Object.entries(podSelector(site, role, { identity }));
    const labels = selector.map(([label, value]) => `${label}=${value}`).join();
    const { items } = await client.list({ kind: 'Pod', namespace, labels }, this.#ended.signal);
    const lost = items.map(lostPod).filter((one) => one !== null);
    if (lost.length > 0) this.#fails(key, site, described(lost));
    else if (known === undefined && this.#clock.now() - beganAt >= START_MS) {
      const fault = await this.#unstarted(key, deployment);
      if (fault !== null) this.#fails(key, site, fault);
    } else if (known !== undefined && hasPods(deployment)) this.#serves(key, known);
    else if (known !== undefined) this.#outages.set(key, { ...known, readySince: null });
  }

  /** Why pods of the Deployment don't start while others serve; `null`: none serves, or all start. */
  async #unstarted(key: string, deployment: KubernetesObject): Promise<string | null> {
    const { client, copies, identity } = this.#deps;
    const spec = this.#deps.wanted.find(key);
    const { ready, replicas, available } = deploymentState(deployment);
    if (spec === undefined || available === 0 || !lacksPods(deployment)) return null;
    const refused = podRefusal(deployment, { copies, identity });
    const cause =
      refused ?? (await newestPodFault(deployment, { client, isFinal: true }, this.#ended.signal));
    const why = cause === null ? 'not ready' : spec.redacted(cause.message);
    return `${replicas - ready} of ${counted(replicas, 'pod')} of ${deployment.metadata.name} can’t start (${why})`;
  }

  #fails(key: string, site: string, what: string): void {
    const known = this.#outages.get(key);
    const fault = known?.fault ?? what;
    this.#outages.set(key, { site, fault, readySince: null });
    if (known === undefined) this.#deps.log.warn({ site, deployment: key }, fault);
  }

  #serves(key: string, known: Outage): void {
    const { site, readySince } = known;
    const now = this.#clock.now();
    if (now - (readySince ?? now) < SETTLED_MS) {
      this.#outages.set(key, { ...known, readySince: readySince ?? now });
      return;
    }
    this.#outages.delete(key);
    this.#deps.log.info({ site, deployment: key }, 'all pods of the Deployment serve again');
  }
}

function described(lost: readonly LostPod[]): string {
  const named = lost
    .slice(0, MOST_NAMED)
    .map(({ name, since, why }) => `the pod ${name} doesn’t serve since ${since} (${why})`);
  const more = lost.length - named.length;
  return [...named, ...(more > 0 ? [`${counted(more, 'pod')} more`] : [])].join(', ');
}

function hasPods(deployment: KubernetesObject): boolean {
  const { ready, replicas } = deploymentState(deployment);
  return ready >= replicas;
}

/** During a rollout, pods that were never ready are missing; the rollout itself says why. */
function lacksPods(deployment: KubernetesObject | undefined): boolean {
  return deployment !== undefined && deploymentState(deployment).isRolledOut && !hasPods(deployment);
}
