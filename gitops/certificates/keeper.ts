import { limit } from '../../base/limit.ts';
import { contentHash } from '../../base/ownership.ts';
import type { CertificateFacts } from '../../sites/manifest/certificate-check.ts';
import type { CertificateSource } from '../appliers/proxy/certificates.ts';
import type { OrderLookup } from '../clients/dns-lookup.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { CertificateStatus } from '../report/report.ts';
import { caaFault } from './caa.ts';
import type { Certificates } from './contract.ts';
import { type WantedName, wantedNames } from './names.ts';
import type { OrderOutcome, Orders } from './orders.ts';
import {
  type CertificateVerdict,
  type DnsAnswer,
  dnsFault,
  judgeCertificate,
  renewalAt,
  WITHOUT,
} from './policy.ts';
import { type KeptName, orderStatus } from './status.ts';
import type { CertificateStore } from './store.ts';

/** The most names that are observed in parallel. */
const OBSERVED_AT_ONCE = 16;
/** The longest timer: a changed clock, or a machine that was suspended, is noticed within this time. */
const LONGEST_TIMER_MS = 60_000;
/** Milliseconds until a name is checked again after an unexpected error. */
const ERROR_RETRY_MS = 60_000;

interface KeeperDeps {
  readonly store: CertificateStore;
  readonly orders: Orders;
  readonly lookup: OrderLookup;
  /** The authority's domains in CAA records. */
  readonly caaIdentities: () => Promise<readonly string[]>;
  /** The host's public addresses. */
  readonly addresses: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

interface Tracked {
  wanted: WantedName;
  readonly fraction: number;
  /** When the current state began. */
  since: number;
  nextAt: number;
  isBusy: boolean;
  verdict: CertificateVerdict | null;
  certificate: CertificateFacts | null;
  dns: DnsAnswer | null;
  /** Why CAA records forbid an order. */
  caa: string | null;
}

/**
 * Keeps a certificate for every name of `tls: acme`: checks its DNS, orders a certificate once the name resolves to
 * this host, and renews it in time. Each name has its own schedule and doesn't wait for others. A name that git no
 * longer has is forgotten immediately.
 */
export class CertificateKeeper implements CertificateSource, Certificates {
  readonly #deps: KeeperDeps;
  readonly #names = new Map<string, Tracked>();
  readonly #stop = new AbortController();
  readonly #observations = limit(OBSERVED_AT_ONCE);
  readonly #checks = new Set<Promise<void>>();
  #bySite: ReadonlyMap<string, readonly Tracked[]> = new Map();
  /** `null` until git was read: before that no certificate may be removed. */
  #desired: DesiredState | null = null;
  #onChange: (site: string) => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  start(onChange: (site: string) => void): void {
    this.#onChange = onChange;
    this.#startDueChecks();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    this.#deps.orders.stop();
    await Promise.allSettled(this.#checks);
  }

  follow(desired: DesiredState): void {
    if (this.#desired === desired) return;
    this.#desired = desired;
    const { names, unknown } = wantedNames(desired, 'acme', this.#deps.addresses);
    for (const [host, { wanted }] of this.#names) {
      if (names.has(host) || unknown.has(wanted.site)) continue;
      this.#names.delete(host);
      this.#deps.orders.forget(host);
    }
    for (const [host, wanted] of names) {
      const known = this.#names.get(host);
      if (known === undefined) this.#names.set(host, this.#newlyTracked(wanted));
      else known.wanted = wanted;
    }
    this.#bySite = Map.groupBy(this.#names.values(), ({ wanted }) => wanted.site);
    this.#startDueChecks();
  }

  uncertified(): ReadonlyMap<string, string> {
    const sites = new Map<string, string>();
    for (const { wanted, verdict } of this.#names.values()) {
      const { host, site, own } = wanted;
      if (!own || (verdict !== null && !WITHOUT.has(verdict.state))) continue;
      const why = verdict === null ? 'not checked yet' : `${verdict.state}: ${verdict.reason}`;
      sites.set(site, `${host}: ${why}`);
    }
    return sites;
  }

  names(site: string): KeptName[] {
    return (this.#bySite.get(site) ?? []).flatMap(({ wanted, verdict, certificate, dns }) =>
      verdict === null ? [] : [{ ...wanted, verdict, certificate, dns }],
    );
  }

  statuses(site: string): CertificateStatus[] {
    return this.names(site).map(orderStatus);
  }

  edition(host: string): string | undefined {
    return this.#deps.store.edition(host);
  }

  async pathsFor(host: string) {
    const { store } = this.#deps;
    return (await store.read(host)) === null ? null : store.paths(host);
  }

  async retain(served: readonly { readonly host: string }[]): Promise<void> {
    if (this.#desired === null) return;
    await this.#deps.store.keepOnly(new Set([...this.#names.keys(), ...served.map(({ host }) => host)]));
  }

  #newlyTracked(wanted: WantedName): Tracked {
    const now = this.#deps.now();
    const fraction = Number.parseInt(contentHash(wanted.host).slice(0, 8), 16) / 2 ** 32;
    const fresh = { verdict: null, certificate: null, dns: null, caa: null, isBusy: false };
    return { wanted, fraction, since: now, nextAt: now, ...fresh };
  }

  /** Starts a check of every name that is due, and sets the timer for the next name. */
  #startDueChecks(): void {
    clearTimeout(this.#timer);
    if (this.#stop.signal.aborted) return;
    const now = this.#deps.now();
    const idle = [...this.#names.values()].filter(({ isBusy }) => !isBusy);
    const due = idle.filter(({ nextAt }) => nextAt <= now).sort((a, b) => a.nextAt - b.nextAt);
    for (const name of due) {
      name.isBusy = true;
      const check = this.#check(name)
        .catch((cause: unknown) => this.#recordError(name, cause))
        .finally(() => this.#checks.delete(check));
      this.#checks.add(check);
    }
    const next = Math.min(...idle.map(({ nextAt }) => nextAt).filter((at) => at > now));
    const pause = Math.min(LONGEST_TIMER_MS, Math.max(1, next - now));
    this.#timer = setTimeout(() => this.#startDueChecks(), pause).unref();
  }

  async #check(name: Tracked): Promise<void> {
    // Only the observation is limited: an order may take hours.
    const observed = await this.#observations(async () => {
      return this.#isForgotten(name) ? null : await this.#observe(name);
    });
    if (observed === null || this.#isForgotten(name)) return;
    const { certificate, dns, caa } = observed;
    name.certificate = certificate;
    name.caa = caa;
    name.dns = dns instanceof Error ? null : dns;
    const { host } = name.wanted;
    if (caa !== null || (!(dns instanceof Error) && dnsFault(host, dns, name.wanted.expected) !== null)) {
      await this.#deps.orders.excuse(host);
    }
    const verdict = this.#judge(name, dns);
    this.#setVerdict(name, verdict);
    if (verdict.order) {
      const outcome = await this.#deps.orders.place(host, certificate?.notAfter ?? 0, (reason) =>
        this.#setVerdict(name, { ...verdict, reason }),
      );
      if (!this.#isForgotten(name)) this.#recordOrder(name, dns, outcome);
    }
    name.isBusy = false;
    this.#startDueChecks();
  }

  async #observe({ wanted: { host }, fraction }: Tracked) {
    const [certificate, dns] = await Promise.all([
      this.#deps.store.read(host).catch(() => null),
      this.#resolve(host),
    ]);
    const isDue = certificate === null || renewalAt(certificate, fraction) <= this.#deps.now();
    return { certificate, dns, caa: isDue ? await this.#caa(host) : null };
  }

  /** `null` also if nobody says: then the order shows what the authority sees. */
  async #caa(host: string): Promise<string | null> {
    try {
      const found = await this.#deps.lookup.caa(host);
      if (found.issue.length === 0) return null;
      const identities = await this.#deps.caaIdentities().catch(() => []);
      return caaFault(found, { identities, method: 'http-01' });
    } catch {
      return null;
    }
  }

  /** An unexpected error affects one name only. It shows as the reason of the name's state. */
  #recordError(name: Tracked, cause: unknown): void {
    name.isBusy = false;
    if (this.#isForgotten(name)) return;
    const state = name.verdict?.state ?? 'pending_certificate';
    const reason = `the check failed: ${cause instanceof Error ? cause.message : String(cause)}`;
    this.#setVerdict(name, { state, reason, order: false, nextAt: this.#deps.now() + ERROR_RETRY_MS });
    this.#startDueChecks();
  }

  #recordOrder(name: Tracked, dns: DnsAnswer | Error, outcome: OrderOutcome): void {
    const isRenewed = 'facts' in outcome;
    if (isRenewed) name.certificate = outcome.facts;
    const verdict = this.#judge(name, dns);
    this.#setVerdict(name, 'notYet' in outcome ? { ...verdict, reason: outcome.notYet } : verdict);
    // The proxy must load the new file, even if the name's state is `live` as before.
    if (isRenewed) this.#onChange(name.wanted.site);
  }

  #judge({ wanted, certificate, since, fraction, caa }: Tracked, dns: DnsAnswer | Error): CertificateVerdict {
    const { host, expected } = wanted;
    const failure = this.#deps.orders.failure(host);
    return judgeCertificate(
      { host, expected, dns, caa, certificate, failure, since, fraction },
      this.#deps.now(),
    );
  }

  #setVerdict(name: Tracked, verdict: CertificateVerdict): void {
    const before = name.verdict;
    name.verdict = verdict;
    name.nextAt = verdict.nextAt;
    if (before?.state === verdict.state && before.reason === verdict.reason) return;
    if (before !== null && before.state !== verdict.state) name.since = this.#deps.now();
    this.#onChange(name.wanted.site);
  }

  /** An `Error` if DNS gives no answer that can be judged, which says nothing about the name. */
  async #resolve(host: string): Promise<DnsAnswer | Error> {
    const { lookup } = this.#deps;
    try {
      const [addresses, alias] = await Promise.all([lookup.addresses(host), lookup.alias(host)]);
      return { addresses, alias };
    } catch (cause) {
      const why = cause instanceof Error ? ('code' in cause ? cause.code : cause.message) : cause;
      return new Error(`${host} can’t be checked (${String(why)})`, { cause });
    }
  }

  #isForgotten(name: Tracked): boolean {
    return this.#stop.signal.aborted || this.#names.get(name.wanted.host) !== name;
  }
}
