import type { Clock } from '../../base/clock.ts';
import type { Change } from '../appliers/contract.ts';

const MAX_REPAIRS = 3;
const WINDOW_MS = 10 * 60_000;

/**
 * Counts repairs by target and key. Three repairs within ten minutes mean that something keeps changing the object:
 * it is left alone until the oldest of these repairs is ten minutes old (docs/reconciler.md, rule 11).
 */
export class RepairLoops {
  readonly #clock: Clock;
  /** Times of repairs within ten minutes, by object; the object repaired last comes last. */
  readonly #repairs = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  repaired(change: Change): void {
    const times = [...this.#recent(change), this.#clock.now()];
    this.#repairs.delete(idOf(change));
    this.#repairs.set(idOf(change), times);
    this.#forgetOld();
  }

  isRepairLoop(change: Change): boolean {
    return this.#recent(change).length >= MAX_REPAIRS;
  }

  #forgetOld(): void {
    const since = this.#clock.now() - WINDOW_MS;
    for (const [id, times] of this.#repairs) {
      if (times.some((at) => at > since)) return;
      this.#repairs.delete(id);
    }
  }

  #recent(change: Change): number[] {
    const since = this.#clock.now() - WINDOW_MS;
    const recent = (this.#repairs.get(idOf(change)) ?? []).filter((at) => at > since);
    if (recent.length === 0) this.#repairs.delete(idOf(change));
    return recent;
  }
}

function idOf({ target, key }: Change): string {
  return `${target} ${key}`;
}
