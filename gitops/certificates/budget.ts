import { z } from 'zod';
import { registrableDomain } from '../../sites/manifest/schema.ts';

const HOUR_MS = 3_600_000;
/** Milliseconds to wait if an authority refuses an order because of a rate limit and names no time. */
const DEFAULT_LIMIT_MS = HOUR_MS;

export const budgetSchema = z.object({
  /** How many orders may be placed immediately at the time `at`. */
  tokens: z.number(),
  at: z.number(),
  /** By registrable domain: until when the authority takes no order. */
  limited: z.record(z.string(), z.number()),
});
type BudgetState = z.output<typeof budgetSchema>;

/**
 * Limits the orders of this host, so that a lost store of certificates doesn't cause a burst of orders. It is a token
 * bucket: `perHour` tokens are added per hour, and it holds a tenth of that, at least one. If the authority refuses an
 * order, its limit applies to one registrable domain (Let's Encrypt: 50 new certificates a week). While two domains are
 * limited, the account counts as limited (300 orders in three hours). All times are milliseconds since the epoch,
 * because the bucket is kept across restarts.
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

  /** The earliest time of the next order for this name; `now` or less means immediately. */
  at(host: string, now: number): number {
    this.#fill(now);
    const { tokens, limited } = this.#state;
    const untilToken = tokens >= 1 ? 0 : ((1 - tokens) / this.#perHour) * HOUR_MS;
    const inForce = Object.values(limited).filter((until) => until > now);
    const account = inForce.length > 1 ? Math.min(...inForce) : 0;
    return Math.max(now + untilToken, limited[domainOf(host)] ?? 0, account);
  }

  /** Takes a token for one order. See `giveBack` for an order that is not placed. */
  take(now: number): void {
    this.#fill(now);
    this.#state = { ...this.#state, tokens: this.#state.tokens - 1 };
  }

  /** Returns a token for which no order was placed. */
  giveBack(): void {
    this.#state = { ...this.#state, tokens: Math.min(this.#burst, this.#state.tokens + 1) };
  }

  /**
   * Records that the authority refused an order for this name because of a rate limit. Returns the time of the next
   * attempt.
   */
  limit(host: string, until: number | null, now: number): number {
    const at = until ?? now + DEFAULT_LIMIT_MS;
    const limited = Object.entries(this.#state.limited).filter(([, before]) => before > now);
    this.#state = { ...this.#state, limited: { ...Object.fromEntries(limited), [domainOf(host)]: at } };
    return at;
  }

  #fill(now: number): void {
    // A clock that was set back neither fills nor empties the bucket.
    const passed = Math.max(0, now - this.#state.at);
    const tokens = Math.min(this.#burst, this.#state.tokens + (passed / HOUR_MS) * this.#perHour);
    this.#state = { ...this.#state, tokens, at: now };
  }
}

function domainOf(host: string): string {
  return registrableDomain(host) ?? host;
}
