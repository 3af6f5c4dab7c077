import { setTimeout as wait } from 'node:timers/promises';
import { RetryableError } from '../../base/errors.ts';
import type { ContainerSpec } from '../../manifest/containers.ts';
import { type Door, openDoor } from './port-gate.ts';
import { healthOf, waitForHealth } from './health.ts';
import { boundEndpoint, type ContainerInstance, type Runtime } from './runtime.ts';

export interface OnDemandOptions {
  readonly runtime: Pick<Runtime, 'list' | 'stop' | 'resume'>;
  /** How long one that nobody uses stays awake, milliseconds. */
  readonly idleMs: number;
  /** How often one that doesn't go to sleep is told again, milliseconds; default a minute. */
  readonly againMs?: number;
  readonly startupDeadlineMs: number;
  /** Runs `work` so that what happens to the container of this name meanwhile is known to be our own doing. */
  readonly whileBusy: (name: string, work: () => Promise<void>) => Promise<void>;
}

interface Entry {
  readonly door: Door;
  readonly site: string;
  /** Going to sleep and waking up, one after the other. */
  last: Promise<void>;
  waking: Promise<void> | null;
  /** Whoever comes now must not be led to one that is about to end. */
  sleeping: boolean;
}

const AGAIN_MS = 60_000;

/**
 * Containers that run only while somebody uses them: a door stands in each one's place, wakes it for the first
 * visitor, who waits, and puts it to sleep when nobody has come for a while. A container that is asleep keeps its
 * place, its mark and its image, and none of the host's memory.
 */
export class OnDemand {
  readonly #options: OnDemandOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #stop = new AbortController();

  constructor(options: OnDemandOptions) {
    this.#options = options;
  }

  /** A door stands in this one's place, and it is asleep or being woken. */
  isResting({ name, stopped }: Pick<ContainerInstance, 'name' | 'stopped'>): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (stopped || entry.waking !== null);
  }

  isTended(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Puts a door in the place of a container that is up or asleep, unless there is one. */
  async tend(name: string, spec: ContainerSpec): Promise<void> {
    if (this.#entries.has(name)) return;
    const door = await openDoor({
      at: { address: spec.address, port: spec.port },
      to: boundEndpoint(spec),
      idleMs: this.#options.idleMs,
      open: () => this.#wake(name, spec),
      onIdle: () => this.#sleep(name),
    });
    this.#entries.set(name, {
      door,
      site: spec.site,
      last: Promise.resolve(),
      waking: null,
      sleeping: false,
    });
  }

  /** Takes the door away; the container stays as it is. */
  async leave(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    await entry?.door.close();
  }

  /** Takes the doors away, of these sites (default: of all), in whose place nothing stands or is to stand. */
  async keepOnly(names: ReadonlySet<string>, sites?: ReadonlySet<string>): Promise<void> {
    const idle = [...this.#entries].filter(
      ([name, { site }]) => !names.has(name) && (sites?.has(site) ?? true),
    );
    await Promise.all(idle.map(([name]) => this.leave(name)));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#entries.keys()].map((name) => this.leave(name)));
  }

  async #wake(name: string, spec: ContainerSpec): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new RetryableError(`${name} is not tended any more`);
    if (entry.waking === null && !entry.sleeping) {
      const health = await healthOf(boundEndpoint(spec), this.#stop.signal);
      if (health === 'healthy' && !entry.sleeping) return;
    }
    entry.waking ??= this.#after(entry, () => this.#start(name, spec)).finally(() => {
      entry.waking = null;
    });
    await entry.waking;
  }

  async #start(name: string, spec: ContainerSpec): Promise<void> {
    const { runtime, startupDeadlineMs, whileBusy } = this.#options;
    const { signal } = this.#stop;
    const found = await this.#find(name);
    if (found?.stopped) await whileBusy(name, () => runtime.resume(found.id, signal));
    // One that is missing or dead is brought back by the reconciler; the visitor waits for that, too.
    const lost = async () => null;
    const health = await waitForHealth(boundEndpoint(spec), { deadlineMs: startupDeadlineMs, lost }, signal);
    if (health !== 'healthy') throw new RetryableError(`${name} did not wake up in ${startupDeadlineMs} ms`);
  }

  #sleep(name: string): void {
    const { runtime, whileBusy, againMs = AGAIN_MS } = this.#options;
    const { signal } = this.#stop;
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.sleeping = true;
    const stop = async () => {
      const found = await this.#find(name);
      if (found?.running) await whileBusy(name, () => runtime.stop(found.id, signal));
    };
    const again = async () => {
      await wait(againMs, undefined, { signal, ref: false });
      // Whoever has come meanwhile keeps it awake, and the door tells when they have gone.
      if (this.#entries.get(name) === entry && !entry.door.isVisited()) this.#sleep(name);
    };
    this.#after(entry, stop)
      .finally(() => {
        entry.sleeping = false;
      })
      // Still awake: it costs memory and harms nobody.
      .catch(again)
      .catch(() => undefined);
  }

  async #find(name: string): Promise<ContainerInstance | undefined> {
    const all = await this.#options.runtime.list(new Set([name]), this.#stop.signal);
    return all.find((instance) => instance.name === name);
  }

  #after(entry: Entry, work: () => Promise<void>): Promise<void> {
    const next = entry.last.then(work);
    entry.last = next.catch(() => undefined);
    return next;
  }
}
