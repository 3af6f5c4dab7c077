import { setInterval } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';

const HOUR_MS = 3_600_000;

/** Does the work at once, and again after each interval until the signal. The work handles its own errors. */
export async function repeatEvery(
  work: () => Promise<unknown>,
  signal: AbortSignal,
  everyMs = HOUR_MS,
): Promise<void> {
  await work();
  try {
    for await (const _ of setInterval(everyMs, null, { signal, ref: false })) await work();
  } catch (error) {
    // An abort of the signal makes the timer throw.
    if (!signal.aborted) throw error;
  }
}

/** A background loop: the next pass follows after the pause that the last one resolved to, or at once when triggered. */
export class TriggeredLoop {
  readonly #clock: Clock;
  #isTriggered = false;
  #pause = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Makes the next pass follow at once, also if a pass is running. */
  trigger(): void {
    this.#isTriggered = true;
    this.#pause.abort();
  }

  /** Runs passes until the signal. `pass` handles its own errors, and resolves to the next pause in milliseconds. */
  async run(signal: AbortSignal, pass: () => Promise<number>): Promise<void> {
    signal.addEventListener('abort', () => this.trigger(), { once: true });
    while (!signal.aborted) {
      this.#isTriggered = false;
      this.#pause = new AbortController();
      const ms = await pass();
      if (!this.#isTriggered) await this.#clock.sleep(ms, { signal: this.#pause.signal, ref: false });
    }
  }
}
