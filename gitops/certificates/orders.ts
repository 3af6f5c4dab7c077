import { type Bounds, backoffMs } from '../../base/backoff.ts';
import { counted } from '../../base/text.ts';
import type { CertificateFacts } from '../../sites/manifest/certificate-check.ts';
import type { Acme } from '../clients/acme.ts';
import { AcmeError } from '../clients/acme-errors.ts';
import { OrderBudget } from './budget.ts';
import type { Ledger, LedgerState, OrderFailure } from './ledger.ts';
import type { CertificateStore } from './store.ts';

const MINUTE_MS = 60_000;
/** Let's Encrypt allows five failed validations of a name an hour. */
const REFUSED: Bounds = { firstMs: 10 * MINUTE_MS, longestMs: 12 * 60 * MINUTE_MS };
/** An outage of the authority doesn't count as a failed validation. */
const OUTAGE: Bounds = { firstMs: MINUTE_MS, longestMs: 60 * MINUTE_MS };
/** The pause that is kept even so: DNS that changes to and fro mustn’t cause an order at each check. */
const EXCUSED_MS = 5 * MINUTE_MS;
/** Limit of orders in progress: a slow order must not block the others. */
const ORDERS_AT_ONCE = 8;

export type OrderOutcome =
  | { readonly facts: CertificateFacts }
  | { readonly failed: OrderFailure }
  /** Why no order was placed yet. */
  | { readonly notYet: string };

export interface OrdersDeps {
  readonly acme: Acme;
  readonly store: CertificateStore;
  readonly ledger: Ledger;
  /** The ledger's content at the start. */
  readonly known: LedgerState | null;
  readonly perHour: number;
  /** Checks that the proxy answers challenges for a name: `null`, or why it doesn't. */
  readonly probe: (host: string, signal: AbortSignal) => Promise<string | null>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly random?: () => number;
  /** Pauses after failures; default: an authority's usual limits. */
  readonly pauses?: { readonly refused: Bounds; readonly outage: Bounds };
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

interface ActiveOrder {
  readonly host: string;
  /** When the certificate to be replaced ends; 0 if there is none. The smallest is placed first. */
  readonly urgency: number;
  readonly abort: AbortController;
  readonly resolve: (outcome: OrderOutcome) => void;
  readonly reject: (cause: unknown) => void;
}

/** The outcome of an order that was aborted. */
const ABORTED: OrderOutcome = { notYet: '' };

/** Places orders, the most urgent first. Limits the orders in progress and those in an hour. Remembers failures. */
export class Orders {
  readonly #deps: OrdersDeps;
  readonly #budget: OrderBudget;
  readonly #failures: Map<string, OrderFailure>;
  /** The orders by host, each from `place` to its outcome. */
  readonly #active = new Map<string, ActiveOrder>();
  #waiting: ActiveOrder[] = [];
  #inProgress = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: OrdersDeps) {
    this.#deps = deps;
    this.#budget = new OrderBudget(deps.perHour, deps.known?.budget ?? null, deps.now());
    this.#failures = new Map(Object.entries(deps.known?.failures ?? {}));
  }

  /** How the last order for this name failed; `null` if it didn't. */
  failure(host: string): OrderFailure | null {
    return this.#failures.get(host) ?? null;
  }

  /** Aborts the order for a name and forgets its failures. */
  forget(host: string): void {
    this.#abort(host);
    if (this.#failures.delete(host)) void this.#save().catch(() => undefined);
  }

  /**
   * What made the last order fail is known now and can be corrected, so the next attempt needs no longer pause after it.
   * A limit of the authority is kept, see `OrderBudget`.
   */
  async excuse(host: string): Promise<void> {
    const failure = this.#failures.get(host);
    const retryAt = this.#deps.now() + EXCUSED_MS;
    if (failure === undefined || failure.retryAt <= retryAt) return;
    this.#failures.set(host, { ...failure, retryAt });
    await this.#save();
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const host of this.#active.keys()) this.#abort(host);
  }

  /** Resolves when the order is done, possibly hours later. If it has to wait, calls `onWait` with the reason. */
  async place(host: string, urgency: number, onWait: (reason: string) => void): Promise<OrderOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<OrderOutcome>();
    const order = { host, urgency, abort: new AbortController(), resolve, reject };
    this.#active.set(host, order);
    // A probe that rejects (the proxy doesn't run yet) gives a reason for `notYet`, too.
    const unprepared = await this.#deps.probe(host, order.abort.signal).catch(String);
    if (unprepared === null && !order.abort.signal.aborted) {
      this.#waiting.push(order);
      this.#placeDue();
      if (this.#waiting.includes(order)) {
        onWait(
          `waits: this host places at most ${counted(this.#deps.perHour, 'order')} an hour and ${ORDERS_AT_ONCE} at once, and the authority may allow fewer`,
        );
      }
    } else resolve(unprepared === null ? ABORTED : { notYet: unprepared });
    const outcome = await promise;
    if (this.#active.get(host) === order) this.#active.delete(host);
    return outcome;
  }

  #abort(host: string): void {
    const order = this.#active.get(host);
    this.#waiting = this.#waiting.filter((other) => other !== order);
    this.#active.delete(host);
    order?.abort.abort();
    order?.resolve(ABORTED);
  }

  /** Places the waiting orders that the budget allows now, and sets the timer for the next one. */
  #placeDue(): void {
    clearTimeout(this.#timer);
    const now = this.#deps.now();
    let next = Number.POSITIVE_INFINITY;
    for (const order of this.#waiting.toSorted((a, b) => a.urgency - b.urgency)) {
      if (this.#inProgress >= ORDERS_AT_ONCE) break;
      const at = this.#budget.at(order.host, now);
      if (at > now) {
        next = Math.min(next, at);
        continue;
      }
      this.#waiting = this.#waiting.filter((other) => other !== order);
      void this.#run(order);
    }
    if (next === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#placeDue(), Math.min(MINUTE_MS, next - now)).unref();
  }

  async #run({ host, abort, resolve, reject }: ActiveOrder): Promise<void> {
    this.#inProgress += 1;
    this.#budget.take(this.#deps.now());
    // An unexpected error rejects the caller of `place`. Other orders are still placed.
    await this.#order(host, abort.signal).then(resolve, reject);
    this.#inProgress -= 1;
    this.#placeDue();
  }

  async #order(host: string, signal: AbortSignal): Promise<OrderOutcome> {
    const { acme, store, log, now } = this.#deps;
    let isPlaced = false;
    const onOrder = () => {
      isPlaced = true;
    };
    try {
      // Saved before the order, so that the order counts even if this process crashes from here on.
      await this.#save();
      const issued = await acme.issue(host, signal, onOrder);
      if (signal.aborted) return ABORTED;
      const facts = await store.write(host, issued, now());
      this.#failures.delete(host);
      await this.#save();
      log.info({ host, issuer: facts.issuer, notAfter: new Date(facts.notAfter) }, 'certificate issued');
      return { facts };
    } catch (cause) {
      // Attempts during an outage of the authority must not use up the budget.
      if (!isPlaced) this.#budget.giveBack();
      if (signal.aborted) return ABORTED;
      const failed = this.#describeFailure(host, cause);
      this.#failures.set(host, failed);
      await this.#save().catch(() => undefined);
      log.warn({ host, detail: failed.message, retryAt: new Date(failed.retryAt) }, 'no certificate');
      return { failed };
    }
  }

  #describeFailure(host: string, cause: unknown): OrderFailure {
    const { now, random = Math.random, pauses = { refused: REFUSED, outage: OUTAGE } } = this.#deps;
    const count = (this.#failures.get(host)?.count ?? 0) + 1;
    const error = cause instanceof AcmeError ? cause : new AcmeError('unusable', String(cause), { cause });
    const bounds = OUTAGES.has(error.type) ? pauses.outage : pauses.refused;
    const ownRetryAt = now() + backoffMs(count, random, bounds);
    const authorityRetryAt =
      error.type === 'rateLimited' ? this.#budget.limit(host, error.retryAt, now()) : error.retryAt;
    return { count, message: describe(error), retryAt: Math.max(ownRetryAt, authorityRetryAt ?? 0) };
  }

  async #save(): Promise<void> {
    const failures = Object.fromEntries(this.#failures);
    await this.#deps.ledger.write({ version: 1, budget: this.#budget.state, failures });
  }
}

const OUTAGES: ReadonlySet<string> = new Set(['unreachable', 'serverInternal', 'timeout', 'badNonce']);

/** The authority's message, with what it means. */
function describe({ type, message }: AcmeError): string {
  if (type === 'rateLimited') return `the authority takes no more orders for now: ${message}`;
  if (OUTAGES.has(type)) return message;
  // The authority named no error type, so the message isn't its own.
  if (type === 'unusable') return `the order failed: ${message}`;
  return `the authority refused the order (${type}): ${message}`;
}
