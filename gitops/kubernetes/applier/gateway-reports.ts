import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { RetryableError } from '../../../base/errors.ts';
import { LastChanges } from '../delivery/last-changes.ts';
import { deliveryDigest, readReport } from '../delivery/report.ts';
import { DELIVERY_LABEL } from '../delivery/secrets.ts';
import type { Copies } from './state/copies.ts';

const POLL_MS = 50;
/** How long a change waits for gateways. By then, a gateway that ended without notice doesn’t count any more. */
const TIMEOUT_MS = 20_000;
/**
 * The longest time for which a Lease counts, even if it states a longer one, so that none delays changes for longer.
 */
const LONGEST_LEASE_MS = 15_000;
const DELIVERED: ReadonlySet<string> = new Set(['site', 'certificate', 'instance']);

const leased = z.object({ spec: z.object({ leaseDurationSeconds: z.number() }) });

interface Waiting {
  readonly secret: string;
  /** All Secrets’ digest at each poll since the change. A gateway that reports any of these serves the change. */
  readonly digests: Set<string>;
  readonly until: number;
  resolve(): void;
  reject(error: unknown): void;
}

interface Gateway {
  /** The name of its pod. */
  readonly name: string;
  readonly report: NonNullable<ReturnType<typeof readReport>>;
}

interface ReportsDeps {
  /** Of the Secrets and Leases in the gateways' namespace. */
  readonly copies: Pick<Copies, 'of'>;
  readonly namespace: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly timeoutMs?: number;
}

/** What the gateways serve, as they report it in their Leases. */
export class GatewayReports {
  readonly #deps: ReportsDeps;
  readonly #waiting = new Set<Waiting>();
  readonly #leases = new LastChanges();
  #isPolling = false;

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when every gateway that takes requests serves the Secret as the copies have it now. Throws a
   * `RetryableError` that names a gateway that refuses it, or the gateways that don't serve it in time.
   */
  async served(secret: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const until = this.#deps.now() + (this.#deps.timeoutMs ?? TIMEOUT_MS);
    const waiting: Waiting = { secret, digests: new Set(), until, resolve, reject };
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#waiting.add(waiting);
    // One poll for all that wait, because each poll takes a digest of all Secrets.
    if (!this.#isPolling) void this.#poll();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#waiting.delete(waiting);
    }
  }

  /**
   * The names of the Secrets that are refused by any of the gateways that take requests. `null`: unknown, because there
   * is no such gateway, or one of them doesn't serve the Secrets as they are now, or refuses too many to name.
   */
  refused(): ReadonlySet<string> | null {
    const digest = this.#digest();
    const reports = this.#gateways().flatMap(({ report }) => (report.ready ? [report] : []));
    const isKnown = reports.every(({ delivered, isCut }) => delivered === digest && !isCut);
    if (reports.length === 0 || !isKnown) return null;
    return new Set(reports.flatMap(({ refused }) => Object.keys(refused)));
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    try {
      while (this.#waiting.size > 0) {
        const digest = this.#digest();
        const gateways = this.#gateways();
        for (const waiting of this.#waiting) {
          waiting.digests.add(digest);
          const outcome = this.#judge(waiting, gateways);
          if (outcome === null) waiting.resolve();
          else if (outcome !== 'pending') waiting.reject(outcome);
        }
        await delay(POLL_MS);
      }
    } catch (error) {
      // A copied object can't be read: it is listed again, and the waiting changes fail.
      for (const { reject } of this.#waiting) reject(error);
    }
    this.#isPolling = false;
  }

  /** `null`: the Secret is served; an error: a gateway refuses it, or the time is over. */
  #judge({ secret, digests, until }: Waiting, gateways: readonly Gateway[]): Error | null | 'pending' {
    const ready = gateways.filter(({ report }) => report.ready);
    const behind = ready.filter(({ report }) => !digests.has(report.delivered));
    if (ready.length > 0 && behind.length === 0) {
      const refusing = ready.find(({ report }) => report.refused[secret] !== undefined);
      if (refusing !== undefined) {
        const why = refusing.report.refused[secret] || 'its log says why';
        return new RetryableError(`the gateway ${refusing.name} refuses it: ${why}`);
      }
      const cut = ready.find(({ report }) => report.isCut);
      if (cut === undefined) return null;
      return new RetryableError(
        `the gateway ${cut.name} refuses too many Secrets to name them all; this one may be among them: see its log`,
      );
    }
    return this.#deps.now() < until ? 'pending' : new RetryableError(this.#obstacle(gateways, behind));
  }

  #obstacle(gateways: readonly { name: string }[], behind: readonly { name: string }[]): string {
    const named = (all: readonly { name: string }[]) => all.map(({ name }) => name).join(', ');
    const { namespace } = this.#deps;
    if (behind.length > 0)
      return `written, but not served yet by the gateways ${named(behind)} in ${namespace}`;
    const why = gateways.length === 0 ? 'none runs' : `${named(gateways)} can’t take requests`;
    return `written, but no gateway in ${namespace} serves it yet: ${why}`;
  }

  #digest(): string {
    const secrets = [...this.#deps.copies.of('Secret')];
    return deliveryDigest(
      secrets.filter(({ metadata }) => DELIVERED.has(metadata.labels?.[DELIVERY_LABEL] ?? '')),
    );
  }

  /** The gateways that run: each renews its Lease until it ends. One whose Lease is seen for the first time counts. */
  #gateways(): Gateway[] {
    const now = this.#deps.now();
    const leases = [...this.#deps.copies.of('Lease')];
    const changes = this.#leases.note(leases, now);
    return leases.flatMap((lease) => {
      const report = readReport(lease);
      const { data } = leased.safeParse(lease);
      if (report === null || data === undefined) return [];
      const { name } = lease.metadata;
      const lastsMs = Math.min(1_000 * data.spec.leaseDurationSeconds, LONGEST_LEASE_MS);
      return now - (changes.get(name) ?? now) < lastsMs ? [{ name, report }] : [];
    });
  }
}
