/** Measures the phases of a start. Phases can overlap: parts start in parallel. */
export class Phases {
  readonly #seconds = new Map<string, number>();

  /** Seconds by the phase's name, in the order in which they ended. */
  get seconds(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#seconds);
  }

  async time<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const from = performance.now();
    const result = await work();
    this.#seconds.set(name, Math.round(performance.now() - from) / 1_000);
    return result;
  }
}
