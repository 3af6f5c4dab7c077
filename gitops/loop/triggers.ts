/** Whom the next pass must look at; carries no data but names (reconciler rule 1). */
export interface Pending {
  readonly all: boolean;
  readonly sites: ReadonlySet<string>;
}

/** Gathers what wakes the loop until its next pass takes it. */
export class Triggers {
  #triggered = true;
  #all = true;
  #sites = new Set<string>();
  #ring: () => void = () => undefined;

  /** Look at every site and all that is ours. */
  all(): void {
    this.#all = true;
    this.check();
  }

  site(site: string): void {
    this.#sites.add(site);
    this.check();
  }

  /** Look whether the sites repository has moved, or something is due. */
  check(): void {
    this.#triggered = true;
    this.#ring();
  }

  take(): Pending {
    const asked = { all: this.#all, sites: this.#sites };
    this.#triggered = false;
    this.#all = false;
    this.#sites = new Set();
    return asked;
  }

  /** After a pass that could not plan: its questions are still open. Wakes nobody. */
  restore(asked: Pending): void {
    this.#all ||= asked.all;
    for (const site of asked.sites) this.#sites.add(site);
  }

  /** Until something wakes us or `at` (by `performance.now()`) has come. */
  async until(at: number, signal: AbortSignal): Promise<void> {
    if (this.#triggered || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ring = resolve;
    const timer = setTimeout(resolve, Math.max(0, at - performance.now()));
    signal.addEventListener('abort', () => resolve(), { once: true });
    await promise;
    clearTimeout(timer);
  }
}
