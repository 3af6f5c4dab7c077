import { backoffMs } from '../../base/backoff.ts';
import { limit } from '../../base/limit.ts';
import { AddressError } from '../clients/public-address.ts';
import { WebhookClient } from '../clients/webhook-client.ts';
import type { Context } from '../context/context.ts';
import { TriggeredLoop } from '../context/repeat.ts';
import { pruneDeliveries } from './deliveries.repository.ts';
import { messageOf } from './message.ts';
import {
  type Attempt,
  countAttempt,
  type Leased,
  leaseQueues,
  nextDeliveries,
  type Outgoing,
  recordDelivered,
  recordFailed,
  releaseQueue,
} from './outbox.repository.ts';
import { addressRules } from './rules.ts';
import { findWebhook, type WebhookRow } from './webhooks.repository.ts';

/** Queues sent at once: by this process in all and per webhook; by all processes per client or organisation. */
const AT_ONCE = 32;
const PER_WEBHOOK = 8;
const PER_OWNER = 8;
/** After this time, a queue waits behind the other queues that are due. */
const SLICE_MS = 30_000;
/** Deliveries that are read at once. */
const BATCH = 50;
/** Interval of the checks without a trigger: a retry may be due, or another process may have been killed. */
const IDLE_MS = 1_000;
const PRUNE_MS = 3_600_000;
/** Pauses after failures in a row: of one queue (`RETRIES`), and of a whole webhook (`PAUSES`). */
const RETRIES = { firstMs: 5_000, longestMs: 8 * 3_600_000 };
const PAUSES = { firstMs: 5_000, longestMs: 3_600_000 };
/** Failures in a row, of any of its queues, after which a webhook pauses. */
const FAILURES_BEFORE_PAUSE = 5;

type Parts = Pick<Context, 'db' | 'log' | 'settings' | 'clock'>;

/** Sends what the outbox holds. All state is in the database, so that another process can continue after a kill. */
export class Deliverer {
  readonly #parts: Parts;
  readonly #client: WebhookClient;
  readonly #atOnce = limit(AT_ONCE);
  /** By webhook: its queues that this process sends now. */
  readonly #active = new Map<string, number>();
  readonly #loop: TriggeredLoop;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#loop = new TriggeredLoop(parts.clock);
    this.#client = new WebhookClient(addressRules(parts.settings));
  }

  /** Makes the deliverer check at once, because a delivery may be due. */
  trigger(): void {
    this.#loop.trigger();
  }

  /** Runs until the signal. Resolves when nothing is being sent any more. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, log, clock } = this.#parts;
    const running = new Set<Promise<void>>();
    let prunedAt = clock.now();
    await this.#loop.run(signal, async () => {
      try {
        for (const leased of await this.#lease()) {
          this.#count(leased.webhook_id, 1);
          const sent = this.#atOnce(() => this.#send(leased, signal))
            .catch((err: unknown) => log.error({ err }, 'a webhook’s queue could not be read or recorded'))
            .finally(() => {
              this.#count(leased.webhook_id, -1);
              running.delete(sent);
              this.trigger();
            });
          running.add(sent);
        }
        if (clock.now() - prunedAt > PRUNE_MS) {
          prunedAt = clock.now();
          await pruneDeliveries(db);
        }
      } catch (err) {
        log.error({ err }, 'the outbox of webhooks could not be read or pruned');
      }
      return IDLE_MS;
    });
    await Promise.allSettled(running);
    await this.#client.close();
  }

  async #lease(): Promise<Leased[]> {
    const active = [...this.#active.values()].reduce((sum, count) => sum + count, 0);
    if (active >= AT_ONCE) return [];
    const busy = [...this.#active].filter(([, count]) => count >= PER_WEBHOOK).map(([id]) => id);
    return await leaseQueues(this.#parts.db, {
      limit: AT_ONCE - active,
      perWebhook: PER_WEBHOOK,
      perOwner: PER_OWNER,
      busy,
    });
  }

  #count(webhook: string, change: number): void {
    const count = (this.#active.get(webhook) ?? 0) + change;
    if (count > 0) this.#active.set(webhook, count);
    else this.#active.delete(webhook);
  }

  /** Sends the deliveries of one queue in order, until one fails, none is left, or its time is over. */
  async #send(leased: Leased, signal: AbortSignal): Promise<void> {
    const { db, clock } = this.#parts;
    const begun = clock.now();
    let { attempts } = leased;
    for (;;) {
      const webhook = await findWebhook(db, leased.webhook_id);
      const next = await nextDeliveries(db, leased, BATCH);
      if (webhook === undefined || next === null) return;
      if (signal.aborted || !webhook.enabled) return await releaseQueue(db, leased, null);
      for (const delivery of next.deliveries) {
        // A released queue is due from now on, so queues that have waited longer are sent first.
        const isOver = clock.now() - begun >= SLICE_MS;
        if (signal.aborted || isOver) return await releaseQueue(db, leased, null);
        if (!(await this.#attempt({ ...leased, attempts }, webhook, delivery, signal))) return;
        attempts = 0;
      }
      if (next.deliveries.length < BATCH) return await releaseQueue(db, leased, next.newest);
    }
  }

  /** `false`: this process no longer has the lease of the queue. */
  async #attempt(
    leased: Leased,
    webhook: WebhookRow,
    delivery: Outgoing,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { db } = this.#parts;
    const attempt = await this.#call(webhook, delivery, signal);
    const { answer } = attempt;
    if (answer !== null && answer >= 200 && answer < 300) {
      if (webhook.failures > 0) {
        await countAttempt(db, webhook.id, { hasFailed: false, pauseMs: 0, notice: null, isGone: false });
      }
      return await recordDelivered(db, leased, delivery.id, attempt);
    }
    if (signal.aborted) {
      await releaseQueue(db, leased, null);
      return false;
    }
    const isGone = answer === 410;
    const retryMs = backoffMs(leased.attempts + 1, Math.random, RETRIES);
    const { isDead } = await recordFailed(db, leased, delivery.id, { ...attempt, retryMs, isFinal: isGone });
    const failures = webhook.failures + 1;
    const pauses = failures - FAILURES_BEFORE_PAUSE;
    await countAttempt(db, webhook.id, {
      hasFailed: true,
      pauseMs: pauses < 0 ? 0 : backoffMs(pauses + 1, Math.random, PAUSES),
      notice: noticeOf(attempt, { isDead, isGone }),
      isGone,
    });
    return false;
  }

  async #call(webhook: WebhookRow, delivery: Outgoing, signal: AbortSignal): Promise<Attempt> {
    const { url, secret, previous_secret: previous, previous_until: until } = webhook;
    const at = this.#parts.clock.date();
    const isValid = previous !== null && until !== null && until > at;
    const message = { ...messageOf(delivery), at, secrets: isValid ? [secret, previous] : [secret] };
    try {
      const answer = await this.#client.send(url, message, signal);
      const isRedirect = answer >= 300 && answer < 400;
      return { answer, error: isRedirect ? 'the receiver redirects; redirects aren’t followed' : null };
    } catch (error) {
      return { answer: null, error: reasonOf(error) };
    }
  }
}

function noticeOf(
  { answer, error }: Attempt,
  { isDead, isGone }: { readonly isDead: boolean; readonly isGone: boolean },
): string | null {
  if (isGone) return 'it was switched off, because the receiver answered 410 Gone';
  if (!isDead) return null;
  return `a delivery was given up after three days; the last attempt: ${error ?? `status ${answer}`}`;
}

/** Why a call failed, for the webhook's owner. Doesn't reveal what listens at a refused address. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the receiver can’t be reached';
  const cause = error.cause instanceof AddressError ? error.cause : error;
  if (cause instanceof AddressError) return cause.message;
  if (error.name === 'TimeoutError') return 'the receiver didn’t answer in 10 s';
  const code = 'code' in error ? ` (${String(error.code)})` : '';
  return `the receiver can’t be reached${code}`;
}
