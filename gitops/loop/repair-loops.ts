import type { Change } from '../appliers/contract.ts';

const REPAIRS = 3;
const WINDOW_MS = 10 * 60_000;

/**
 * Counts repairs: a thing that was repaired three times in ten minutes is being changed by somebody else all the time,
 * and is left alone until the oldest of these repairs is ten minutes ago (reconciler rule 11).
 */
export class RepairLoops {
  readonly #repairs = new Map<string, number[]>();
  readonly #now: () => number;

  /** `now` in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  repaired(change: Change): void {
    this.#repairs.set(idOf(change), [...this.#recent(change), this.#now()]);
  }

  isRepairLoop(change: Change): boolean {
    return this.#recent(change).length >= REPAIRS;
  }

  #recent(change: Change): number[] {
    const since = this.#now() - WINDOW_MS;
    const recent = (this.#repairs.get(idOf(change)) ?? []).filter((at) => at > since);
    if (recent.length === 0) this.#repairs.delete(idOf(change));
    return recent;
  }
}

function idOf({ target, key }: Change): string {
  return `${target} ${key}`;
}
