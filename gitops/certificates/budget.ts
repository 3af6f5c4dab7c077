import { z } from 'zod';
import { registrableDomain } from '../manifest/schema.ts';

const HOUR_MS = 3_600_000;
/** Where an authority says "too often" and not for how long. */
const UNSAID_MS = HOUR_MS;

export const budgetSchema = z.object({
  /** Orders that may be placed at once, as of `at`. */
  tokens: z.number(),
  at: z.number(),
  /** Until when the authority takes no order for a registrable domain. */
  limited: z.record(z.string(), z.number()),
});
export type BudgetState = z.output<typeof budgetSchema>;

/**
 * How many orders this host may place, so that a lost store of certificates becomes no storm: a token bucket that fills
 * by `perHour`, a tenth of it at once. What the authority limits counts for the names of one registrable domain (Let's
 * Encrypt: 50 new certificates a week each); two such limits at a time mean the account (300 orders in three hours).
 * All times are the wall clock's, since the bucket is kept across restarts.
 */
export class OrderBudget {
  readonly #perHour: number;
  readonly #burst: number;
  #state: BudgetState;

  constructor(perHour: number, state: BudgetState | null, now: number) {
    this.#perHour = perHour;
    this.#burst = Math.max(1, perHour / 10);
    this.#state = state ?? { tokens: this.#burst, at: now, limited: {} };
  }

  get state(): BudgetState {
    return this.#state;
  }

  /** When the next order for this name may be placed; not later than `now`: at once. */
  at(host: string, now: number): number {
    this.#fill(now);
    const { tokens, limited } = this.#state;
    const short = tokens >= 1 ? 0 : ((1 - tokens) / this.#perHour) * HOUR_MS;
    const inForce = Object.values(limited).filter((until) => until > now);
    const account = inForce.length > 1 ? Math.min(...inForce) : 0;
    return Math.max(now + short, limited[domainOf(host)] ?? 0, account);
  }

  take(now: number): void {
    this.#fill(now);
    this.#state = { ...this.#state, tokens: this.#state.tokens - 1 };
  }

  /** What was taken and came to no order. */
  giveBack(): void {
    this.#state = { ...this.#state, tokens: Math.min(this.#burst, this.#state.tokens + 1) };
  }

  /** The authority refused an order for this name: too many. Answers until when. */
  limit(host: string, until: number | null, now: number): number {
    const at = until ?? now + UNSAID_MS;
    const limited = Object.entries(this.#state.limited).filter(([, before]) => before > now);
    this.#state = { ...this.#state, limited: { ...Object.fromEntries(limited), [domainOf(host)]: at } };
    return at;
  }

  #fill(now: number): void {
    // A clock that was set back fills nothing, and takes nothing away.
    const passed = Math.max(0, now - this.#state.at);
    const tokens = Math.min(this.#burst, this.#state.tokens + (passed / HOUR_MS) * this.#perHour);
    this.#state = { ...this.#state, tokens, at: now };
  }
}

function domainOf(host: string): string {
  return registrableDomain(host) ?? host;
}
