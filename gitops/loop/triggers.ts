import type { Clock } from '../../base/clock.ts';

/** What the next pass must cover. It carries no data but names (docs/reconciler.md, rule 1). */
export interface PendingChecks {
  /** Everything, not only `sites`. */
  readonly all: boolean;
  readonly sites: ReadonlySet<string>;
}

/** Collects triggers until the next pass takes them. */
export class Triggers {
  readonly #clock: Clock;
  #triggered = true;
  #all = true;
  #sites = new Set<string>();
  #interrupt: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Asks for a pass over everything. */
  all(): void {
    this.#all = true;
    this.check();
  }

  /** Asks for a pass over this site. */
  site(site: string): void {
    this.#sites.add(site);
    this.check();
  }

  /** Asks for a pass that covers whatever is new or due by then. */
  check(): void {
    this.#triggered = true;
    this.#interrupt();
  }

  take(): PendingChecks {
    const pending = { all: this.#all, sites: this.#sites };
    this.#triggered = false;
    this.#all = false;
    this.#sites = new Set();
    return pending;
  }

  /** Puts the checks of a failed pass back, without starting another pass for them. */
  restore(pending: PendingChecks): void {
    this.#all ||= pending.all;
    for (const site of pending.sites) this.#sites.add(site);
  }

  /** Resolves at the next trigger, at the time `at` (by the monotonic clock), or when `signal` aborts. */
  async until(at: number, signal: AbortSignal): Promise<void> {
    if (this.#triggered || signal.aborted) return;
    const interruption = new AbortController();
    this.#interrupt = () => interruption.abort();
    signal.addEventListener('abort', this.#interrupt);
    await this.#clock.sleep(at - this.#clock.now(), { signal: interruption.signal });
    signal.removeEventListener('abort', this.#interrupt);
  }
}
