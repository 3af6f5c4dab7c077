import type { Clock } from '../../../../base/clock.ts';
import type { Observed } from '../../../appliers/contract.ts';
import { objectKey } from '../../client/address.ts';
import type { ObjectRef } from './object-spec.ts';

/** A Secret that is still there after this time counts as a new one, made by others under the same name. */
const LONGEST_MS = 60 * 60_000;

/**
 * The Secrets that may still exist although this process deleted their record (a ConfigMap), their only trace.
 */
export class UnconfirmedRemovals {
  readonly #clock: Clock;
  readonly #removals = new Map<string, { readonly secret: Observed<ObjectRef>; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(secret: Observed<ObjectRef>): void {
    const name = objectKey(secret.ref.address);
    const until = this.#removals.get(name)?.until ?? this.#clock.now() + LONGEST_MS;
    this.#removals.set(name, { secret, until });
  }

  /** The Secret is gone, or wanted and there. */
  end(name: string): void {
    this.#removals.delete(name);
  }

  has(name: string): boolean {
    return this.#removals.has(name);
  }

  /** The Secrets whose record isn't among these. */
  without(records: readonly Observed<ObjectRef>[]): Observed<ObjectRef>[] {
    const now = this.#clock.now();
    for (const [name, { until }] of this.#removals) if (until <= now) this.#removals.delete(name);
    const recorded = new Set(records.map(({ key }) => key));
    return [...this.#removals.values()].map(({ secret }) => secret).filter(({ key }) => !recorded.has(key));
  }
}
