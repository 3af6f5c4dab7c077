import type { CertificateFacts } from '../appliers/proxy/certificate-check.ts';
import { type Bounds, backoffMs } from '../base/backoff.ts';
import type { Acme } from '../clients/acme.ts';
import { AcmeError } from '../clients/acme-errors.ts';
import { OrderBudget } from './budget.ts';
import type { Ledger, LedgerState, OrderFailure } from './ledger.ts';
import type { CertificateStore } from './store.ts';

const MINUTE_MS = 60_000;
/** Let's Encrypt counts five failed validations of a name an hour. */
const REFUSED: Bounds = { firstMs: 10 * MINUTE_MS, longestMs: 12 * 60 * MINUTE_MS };
/** Nothing was counted against the name. */
const OUTAGE: Bounds = { firstMs: MINUTE_MS, longestMs: 60 * MINUTE_MS };
/** Orders under way: an authority that takes its time with one must not hold up the others. */
const AT_ONCE = 8;

export type OrderOutcome =
  | { readonly facts: CertificateFacts }
  | { readonly failed: OrderFailure }
  /** No order was placed, for a reason that says when it may be. */
  | { readonly notYet: string };

export interface OrdersDeps {
  readonly acme: Acme;
  readonly store: CertificateStore;
  readonly ledger: Ledger;
  /** What an earlier process left in the ledger. */
  readonly known: LedgerState | null;
  readonly perHour: number;
  /** `null`: the proxy answers challenges for this name; else why not. */
  readonly probe: (host: string, signal: AbortSignal) => Promise<string | null>;
  readonly now: () => number;
  readonly random?: () => number;
  /** How failures are spaced out; an authority's usual limits unless told. */
  readonly pauses?: { readonly refused: Bounds; readonly outage: Bounds };
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

interface Active {
  readonly host: string;
  /** The smaller, the sooner: when the certificate ends that is to be replaced, 0 where there is none. */
  readonly urgency: number;
  readonly over: AbortController;
  readonly done: (outcome: OrderOutcome) => void;
  readonly failed: (cause: unknown) => void;
}

/** Nobody wants to hear of it any more. */
const OVER: OrderOutcome = { notYet: '' };

/** Places orders, the most urgent first, no more at a time and an hour than may be; remembers what failed. */
export class Orders {
  readonly #deps: OrdersDeps;
  readonly #budget: OrderBudget;
  readonly #failures: Map<string, OrderFailure>;
  /** By host, from the wish on. */
  readonly #active = new Map<string, Active>();
  #waiting: Active[] = [];
  #placed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: OrdersDeps) {
    this.#deps = deps;
    this.#budget = new OrderBudget(deps.perHour, deps.known?.budget ?? null, deps.now());
    this.#failures = new Map(Object.entries(deps.known?.failures ?? {}));
  }

  /** Why the last order for this name failed; `null`: it didn't. */
  failure(host: string): OrderFailure | null {
    return this.#failures.get(host) ?? null;
  }

  /** The name is wanted no more: its order ends where it is, and its failures are nobody's. */
  forget(host: string): void {
    this.#end(host);
    if (this.#failures.delete(host)) void this.#save().catch(() => undefined);
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const host of this.#active.keys()) this.#end(host);
  }

  /** Resolves when the order is done, which may be hours later; `onWait` hears why it isn't placed at once. */
  async place(host: string, urgency: number, onWait: (reason: string) => void): Promise<OrderOutcome> {
    const { promise, resolve: done, reject: failed } = Promise.withResolvers<OrderOutcome>();
    const active = { host, urgency, over: new AbortController(), done, failed };
    this.#active.set(host, active);
    // One that can't even be asked (no proxy yet) is a reason to wait as any other.
    const unprepared = await this.#deps.probe(host, active.over.signal).catch(String);
    if (unprepared === null && !active.over.signal.aborted) {
      this.#waiting.push(active);
      this.#pump();
      if (this.#waiting.includes(active)) {
        onWait(`waits its turn: this host places ${this.#deps.perHour} orders an hour`);
      }
    } else done(unprepared === null ? OVER : { notYet: unprepared });
    const outcome = await promise;
    if (this.#active.get(host) === active) this.#active.delete(host);
    return outcome;
  }

  #end(host: string): void {
    const active = this.#active.get(host);
    this.#waiting = this.#waiting.filter((one) => one !== active);
    this.#active.delete(host);
    active?.over.abort();
    active?.done(OVER);
  }

  #pump(): void {
    clearTimeout(this.#timer);
    const now = this.#deps.now();
    let next = Number.POSITIVE_INFINITY;
    for (const one of this.#waiting.toSorted((a, b) => a.urgency - b.urgency)) {
      if (this.#placed >= AT_ONCE) break;
      const at = this.#budget.at(one.host, now);
      if (at > now) {
        next = Math.min(next, at);
        continue;
      }
      this.#waiting = this.#waiting.filter((other) => other !== one);
      void this.#run(one);
    }
    if (next === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#pump(), Math.min(MINUTE_MS, next - now)).unref();
  }

  async #run({ host, over, done, failed }: Active): Promise<void> {
    this.#placed += 1;
    this.#budget.take(this.#deps.now());
    // What nobody foresaw is for whoever waits for the order, and no reason to place no others.
    await this.#order(host, over.signal).then(done, failed);
    this.#placed -= 1;
    this.#pump();
  }

  async #order(host: string, signal: AbortSignal): Promise<OrderOutcome> {
    const { acme, store, log, now } = this.#deps;
    let placed = false;
    const onOrder = () => {
      placed = true;
    };
    try {
      // Before the authority hears of it: a crash from here on has cost an order.
      await this.#save();
      const issued = await acme.issue(host, signal, onOrder);
      if (signal.aborted) return OVER;
      const facts = await store.write(host, issued, now());
      this.#failures.delete(host);
      await this.#save();
      log.info({ host, issuer: facts.issuer, notAfter: new Date(facts.notAfter) }, 'certificate issued');
      return { facts };
    } catch (cause) {
      // An authority that is away must not use up what is meant for its return.
      if (!placed) this.#budget.giveBack();
      if (signal.aborted) return OVER;
      const failed = this.#failed(host, cause);
      this.#failures.set(host, failed);
      await this.#save().catch(() => undefined);
      log.warn({ host, detail: failed.message, retryAt: new Date(failed.retryAt) }, 'no certificate');
      return { failed };
    }
  }

  #failed(host: string, cause: unknown): OrderFailure {
    const { now, random = Math.random, pauses = { refused: REFUSED, outage: OUTAGE } } = this.#deps;
    const count = (this.#failures.get(host)?.count ?? 0) + 1;
    const error = cause instanceof AcmeError ? cause : new AcmeError('unusable', String(cause), { cause });
    const bounds = OUTAGES.has(error.type) ? pauses.outage : pauses.refused;
    const own = now() + backoffMs(count, random, bounds);
    const told =
      error.type === 'rateLimited' ? this.#budget.limit(host, error.retryAt, now()) : error.retryAt;
    return { count, message: describe(error), retryAt: Math.max(own, told ?? 0) };
  }

  async #save(): Promise<void> {
    const failures = Object.fromEntries(this.#failures);
    await this.#deps.ledger.write({ version: 1, budget: this.#budget.state, failures });
  }
}

const OUTAGES: ReadonlySet<string> = new Set(['unreachable', 'serverInternal', 'timeout', 'badNonce']);

/** The authority's words with what they mean for the person who reads them. */
function describe({ type, message }: AcmeError): string {
  if (type === 'rateLimited') return `the authority takes no more orders for now: ${message}`;
  if (OUTAGES.has(type)) return message;
  return `the authority refused the order (${type}): ${message}`;
}
