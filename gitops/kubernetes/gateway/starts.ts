import type { Clock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { StartFailure } from '../delivery/report.ts';

/** How long the first request to a preview server on demand waits; nginx gives up after 60 s. */
export const START_MS = 55_000;
/** How long all requests get the error of a failed start, so that they don't each cause a write to the API server. */
const PAUSE_MS = 5_000;

interface Attempt {
  readonly outcome: Promise<void>;
  /** The time before which no other attempt is made, in monotonic milliseconds. */
  until: number;
  isReported: boolean;
}

/** Starts services on demand, with one attempt for all requests of a service. */
export class Starts {
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  readonly #attempts = new Map<string, Attempt>();
  /** The services that were started, or may have been, and not stopped since. */
  readonly #asked = new Set<string>();
  /** By service: why its last finished attempt has failed. */
  readonly #failures = new Map<string, StartFailure>();
  #failed = 0;

  constructor(deps: { readonly clock: Clock; readonly log: Log }) {
    this.#deps = deps;
  }

  /**
   * Calls `start`, unless it runs for this service, succeeded within the last 55 seconds, or failed within the last
   * five. In these cases, the outcome is that of the last call.
   */
  async start(service: string, start: () => Promise<void>): Promise<void> {
    const known = this.#attempts.get(service);
    if (known !== undefined && this.#deps.clock.now() < known.until) return await known.outcome;
    const attempt: Attempt = { outcome: this.#try(service, start), until: Infinity, isReported: false };
    this.#attempts.set(service, attempt);
    try {
      await attempt.outcome;
      attempt.until = this.#deps.clock.now() + START_MS;
    } catch (error) {
      attempt.until = this.#deps.clock.now() + PAUSE_MS;
      throw error;
    }
  }

  /** True if the service may have a pod, ready or not. */
  isAsked(service: string): boolean {
    return this.#asked.has(service);
  }

  /**
   * The services whose last attempt has failed. They stay here while the next attempt runs, and until a pod is ready.
   */
  get failures(): ReadonlyMap<string, StartFailure> {
    return this.#failures;
  }

  /**
   * Call it when the service has a ready pod. Once it has none any more, the next request starts the service at once.
   */
  ready(service: string): void {
    this.#attempts.delete(service);
    this.#failures.delete(service);
  }

  /** Call it when no pod of the service was ready in time. */
  late(service: string): void {
    const attempt = this.#attempts.get(service);
    if (attempt === undefined || attempt.isReported) return;
    attempt.isReported = true;
    this.#fail(service, '');
    this.#deps.log.warn({ service }, 'a preview server on demand has had no ready pod for 55 seconds');
  }

  /** Call it when the service was stopped. */
  stopped(service: string): void {
    this.#attempts.delete(service);
    this.#asked.delete(service);
  }

  /** Call it when the service no longer runs on demand. */
  forget(service: string): void {
    this.stopped(service);
    this.#failures.delete(service);
  }

  #fail(service: string, reason: string): void {
    this.#failed += 1;
    this.#failures.set(service, { number: this.#failed, reason });
  }

  async #try(service: string, start: () => Promise<void>): Promise<void> {
    try {
      await start();
      this.#asked.add(service);
    } catch (error) {
      // Without an answer, the change may have been made.
      if (error instanceof RetryableError) this.#asked.add(service);
      const reason = error instanceof Error ? error.message : String(error);
      this.#fail(service, reason);
      this.#deps.log.warn({ service, reason }, 'a preview server on demand can’t be started');
      throw error;
    }
  }
}
