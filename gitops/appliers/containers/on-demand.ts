import { type Clock, systemClock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import type { ContainerSpec } from '../../../sites/manifest/containers.ts';
import { healthOf, waitForHealth } from './health.ts';
import { openPortGate, type PortGate } from './port-gate.ts';
import { boundEndpoint, type ContainerInstance, type Runtime } from './runtime.ts';

interface OnDemandOptions {
  readonly runtime: Pick<Runtime, 'list' | 'stop' | 'resume'>;
  /** Milliseconds without a client until a container is stopped. */
  readonly idleMs: number;
  /** The same for a new container that has had no client; default five seconds, at most `idleMs`. */
  readonly unusedMs?: number;
  /** Milliseconds until another attempt to stop a container; default a minute. */
  readonly stopRetryMs?: number;
  readonly startupDeadlineMs: number;
  /** Runs `work`. Meanwhile, losses of this container are not reported, because the applier causes them. */
  readonly whileBusy: (name: string, work: () => Promise<void>) => Promise<void>;
  /** A client waits for a container that is gone or dead: the reconciler must replace it. */
  readonly onMissing: () => void;
  readonly clock?: Clock;
}

interface Entry {
  readonly gate: PortGate;
  readonly site: string;
  /** A mutex: only one start or stop runs at a time. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
  starting: Promise<void> | null;
  /** A client waits for the container, which isn't known to run. */
  isResuming: boolean;
  /** A new client must not be connected to a container that is about to stop. */
  isStopping: boolean;
}

const STOP_RETRY_MS = 60_000;
/** After a replacement, clients of the old container have this long to connect to the new one. */
const UNUSED_MS = 5_000;

/**
 * Containers that run only while a client is connected. A port gate listens in place of each container, starts it for
 * the first client, and stops it after a while without clients; a new container that has had no client is stopped
 * sooner. A stopped container keeps its address, mark and image, and uses none of the host's memory.
 */
export class OnDemand {
  readonly #options: OnDemandOptions;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new AbortController();

  constructor(options: OnDemandOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** True if a gate listens for the container, and the container is stopped or about to start. */
  isOnStandby({ name, stopped }: Pick<ContainerInstance, 'name' | 'stopped'>): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (stopped || entry.isResuming);
  }

  /** True if a client is connected and the container must answer it. */
  isServing(name: string): boolean {
    const entry = this.#entries.get(name);
    return entry?.gate.hasClients() === true && !entry.isResuming && !entry.isStopping;
  }

  hasGate(name: string): boolean {
    return this.#entries.has(name);
  }

  /**
   * Opens the gate of a running or stopped container, unless it is open. `isNew`: it was started only to see that it gets
   * healthy.
   */
  async openGate(name: string, spec: ContainerSpec, { isNew = false } = {}): Promise<void> {
    if (this.#entries.has(name)) return;
    const { idleMs, unusedMs = UNUSED_MS } = this.#options;
    const gate = await openPortGate({
      listen: { address: spec.address, port: spec.port },
      target: boundEndpoint(spec),
      idleMs,
      ...(isNew ? { unusedMs: Math.min(unusedMs, idleMs) } : {}),
      startTarget: () => this.#ensureStarted(name, spec),
      onIdle: () => this.#stopIdle(name),
    });
    const { site } = spec;
    this.#entries.set(name, {
      gate,
      site,
      exclusive: limit(1),
      starting: null,
      isResuming: false,
      isStopping: false,
    });
  }

  /** Closes the gate. The container stays as it is. */
  async closeGate(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    await entry?.gate.close();
  }

  /** Closes the gates of these sites (default: of all) except those of `names`. */
  async keepOnly(names: ReadonlySet<string>, sites?: ReadonlySet<string>): Promise<void> {
    const others = [...this.#entries].filter(
      ([name, { site }]) => !names.has(name) && (sites?.has(site) ?? true),
    );
    await Promise.all(others.map(([name]) => this.closeGate(name)));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#entries.keys()].map((name) => this.closeGate(name)));
  }

  async #ensureStarted(name: string, spec: ContainerSpec): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new RetryableError(`the port gate of ${name} is closed`);
    if (entry.starting === null && !entry.isStopping) {
      const health = await healthOf(boundEndpoint(spec), this.#closing.signal);
      if (health === 'healthy' && !entry.isStopping) return;
    }
    entry.isResuming ||= entry.starting === null;
    entry.starting ??= entry
      .exclusive(() => this.#start(name, spec, entry))
      .finally(() => {
        entry.starting = null;
        entry.isResuming = false;
      });
    await entry.starting;
  }

  async #start(name: string, spec: ContainerSpec, entry: Entry): Promise<void> {
    const { runtime, startupDeadlineMs, whileBusy } = this.#options;
    const { signal } = this.#closing;
    const found = await this.#find(name);
    if (found?.stopped) await whileBusy(name, () => runtime.resume(found.id, signal));
    else if (found?.running) entry.isResuming = false;
    // The container is gone or dead. It may have died during a stop, when losses are not reported. The client waits for
    // the replacement.
    else this.#options.onMissing();
    const death = async () => null;
    const deadline = { deadlineMs: startupDeadlineMs, death, clock: this.#clock };
    const health = await waitForHealth(boundEndpoint(spec), deadline, signal);
    if (health !== 'healthy') throw new RetryableError(`${name} did not start in ${startupDeadlineMs} ms`);
  }

  #stopIdle(name: string): void {
    const { runtime, whileBusy, stopRetryMs = STOP_RETRY_MS } = this.#options;
    const { signal } = this.#closing;
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.isStopping = true;
    const stop = async () => {
      const found = await this.#find(name);
      if (found?.running) await whileBusy(name, () => runtime.stop(found.id, signal));
    };
    const retry = async () => {
      await this.#clock.sleep(stopRetryMs, { signal, ref: false });
      signal.throwIfAborted();
      // If a new client has connected, the container stays up; the gate reports when it is idle again.
      if (this.#entries.get(name) === entry && !entry.gate.hasClients()) this.#stopIdle(name);
    };
    entry
      .exclusive(stop)
      .finally(() => {
        entry.isStopping = false;
      })
      .catch(retry)
      .catch(() => undefined);
  }

  async #find(name: string): Promise<ContainerInstance | undefined> {
    const all = await this.#options.runtime.list(new Set([name]), this.#closing.signal);
    return all.find((instance) => instance.name === name);
  }
}
