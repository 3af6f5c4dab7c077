import { type Clock, systemClock } from '../../../base/clock.ts';
import { limit } from '../../../base/limit.ts';
import type { Log } from '../../../base/log.ts';
import { healthOf } from './health.ts';
import type { Endpoint } from './runtime.ts';

const INTERVAL_MS = 10_000;
/** A single slow answer is no outage: a second probe confirms it. */
const CONFIRM_MS = 1_000;
/** An outage ends after this long with answers only. Management, which reads every 5 s, therefore sees each one. */
const SETTLED_MS = 15_000;
const PROBES_AT_ONCE = 16;

interface Watched {
  readonly site: string;
  /** For people: `processing server 0`. */
  readonly what: string;
  readonly endpoint: Endpoint;
}

interface Outage {
  readonly fault: string;
  /** Since when it has answered again, by the monotonic clock; `null`: it doesn't. */
  answersSince: number | null;
}

interface HealthWatchDeps {
  /** It doesn't run at the moment, and starts for its next client. */
  readonly isOnStandby: (name: string) => boolean;
  /** An outage begins: the site needs a pass. */
  readonly onOutage: (site: string) => void;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly clock?: Clock;
}

/**
 * Probes each container that was seen healthy, whatever health check its image has. It changes nothing: an outage
 * triggers a pass, which repairs the container as any drift.
 */
export class HealthWatch {
  readonly #deps: HealthWatchDeps;
  readonly #clock: Clock;
  /** By container name. */
  readonly #watched = new Map<string, Watched>();
  readonly #outages = new Map<string, Outage>();
  readonly #probes = limit(PROBES_AT_ONCE);

  constructor(deps: HealthWatchDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
  }

  /** The container has answered. From now on it is watched. */
  sawHealthy(name: string, container: Watched): void {
    this.#watched.set(name, container);
    const outage = this.#outages.get(name);
    if (outage === undefined) return;
    outage.answersSince ??= this.#clock.now();
    if (this.#clock.now() - outage.answersSince < SETTLED_MS) return;
    this.#outages.delete(name);
    const { site, what } = container;
    this.#deps.log.info({ site, container: name }, `${what} answers its health check again`);
  }

  /** The container is removed on purpose. */
  forget(name: string): void {
    this.#watched.delete(name);
    this.#outages.delete(name);
  }

  /** Forgets the containers of these sites (default: of all) except `names`. */
  keepOnly(names: ReadonlySet<string>, sites?: ReadonlySet<string>): void {
    for (const [name, { site }] of this.#watched) {
      if (!names.has(name) && (sites?.has(site) ?? true)) this.forget(name);
    }
  }

  /** Which containers of the site don't serve, for people; `null`: all do. The text stays the same during an outage. */
  faultOf(site: string): string | null {
    const faults = [...this.#outages].flatMap(([name, { fault }]) =>
      this.#watched.get(name)?.site === site ? [fault] : [],
    );
    return faults.length === 0
      ? null
      : `${faults.sort().join('; ')}. This ends after ${SETTLED_MS / 1000} s with answers only`;
  }

  /** The names of the site's containers that answer. */
  serving(site: string): string[] {
    return [...this.#watched].flatMap(([name, one]) =>
      one.site === site && !this.#outages.has(name) ? [name] : [],
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(INTERVAL_MS, { signal, ref: false });
      await Promise.all([...this.#watched.keys()].map((name) => this.check(name, signal)));
    }
  }

  /** Probes one container now, if it is watched. Never throws. */
  async check(name: string, signal: AbortSignal): Promise<void> {
    const container = this.#watched.get(name);
    const isWatched = () => this.#watched.get(name) === container && !this.#deps.isOnStandby(name);
    if (container === undefined || !isWatched()) return;
    const probe = () => this.#probes(() => healthOf(container.endpoint, signal)).catch(() => null);
    let health = await probe();
    if (health !== 'healthy' && !this.#outages.has(name)) {
      await this.#clock.sleep(CONFIRM_MS, { signal, ref: false });
      health = await probe();
    }
    if (health === null || !isWatched()) return;
    if (health === 'healthy') this.sawHealthy(name, container);
    else this.#fails(name, container, health === 'unhealthy' ? 'it answers with an error' : 'no answer');
  }

  #fails(name: string, { site, what }: Watched, why: string): void {
    const outage = this.#outages.get(name);
    // An answer in between doesn't end the outage, but the container needs another repair.
    const isNew = outage === undefined || outage.answersSince !== null;
    if (outage === undefined) {
      const fault = `${what} fails its health check since ${this.#clock.date().toISOString()} (GET /healthz: ${why})`;
      this.#outages.set(name, { fault, answersSince: null });
      this.#deps.log.warn({ site, container: name }, fault);
    } else outage.answersSince = null;
    if (isNew) this.#deps.onOutage(site);
  }
}
