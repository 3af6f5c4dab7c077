import type { CertificateFacts } from '../appliers/proxy/certificate-check.ts';
import type { CertificateSource } from '../appliers/proxy/certificates.ts';
import { contentHash } from '../base/ownership.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { DnsLookup } from '../host-report/names.ts';
import type { CertificateStatus } from '../report/report.ts';
import type { Certificates } from './contract.ts';
import { type WantedName, wantedNames } from './names.ts';
import type { OrderOutcome, Orders } from './orders.ts';
import { type CertificateVerdict, type DnsAnswer, judgeCertificate, WITHOUT } from './policy.ts';
import { orderStatus } from './status.ts';
import type { CertificateStore } from './store.ts';

/** Names that are looked at together. */
const AT_ONCE = 16;
/** A clock that is set, or a long sleep of the machine, is noticed after this much. */
const LONGEST_TIMER_MS = 60_000;
/** Until a name is looked at again whose look came to nothing for a reason of our own. */
const STUMBLED_MS = 60_000;

export interface KeeperDeps {
  readonly store: CertificateStore;
  readonly orders: Orders;
  readonly lookup: DnsLookup;
  /** Under which this host is reached. */
  readonly addresses: readonly string[];
  readonly now: () => number;
}

/** A name as it stands. */
export interface KeptName extends WantedName {
  readonly verdict: CertificateVerdict;
  readonly certificate: CertificateFacts | null;
  /** `null`: not looked up yet, or it couldn't be. */
  readonly dns: DnsAnswer | null;
}

interface Tracked {
  wanted: WantedName;
  readonly fraction: number;
  /** Since when it has been waiting for something; anew when its state changes. */
  since: number;
  nextAt: number;
  busy: boolean;
  verdict: CertificateVerdict | null;
  certificate: CertificateFacts | null;
  dns: DnsAnswer | null;
}

/**
 * Sees to it that every name of `tls: acme` has a certificate: looks its DNS up, orders when it leads here, renews in
 * time. Each name has its own timer and waits for no other; a name that git no longer has is forgotten at once.
 */
export class CertificateKeeper implements CertificateSource, Certificates {
  readonly #deps: KeeperDeps;
  readonly #names = new Map<string, Tracked>();
  readonly #stop = new AbortController();
  #bySite: ReadonlyMap<string, readonly Tracked[]> = new Map();
  /** Before the first look at git there is no telling what may go. */
  #desired: DesiredState | null = null;
  #onChange: (site: string) => void = () => undefined;
  #busy = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended: Promise<unknown>[] = [];

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  start(onChange: (site: string) => void): void {
    this.#onChange = onChange;
    this.#tick();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    this.#deps.orders.stop();
    await Promise.allSettled(this.#ended);
  }

  /** What git asks for now. */
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
    this.#tick();
  }

  uncertified(): ReadonlyMap<string, string> {
    const sites = new Map<string, string>();
    for (const { wanted, verdict } of this.#names.values()) {
      const { host, site, own } = wanted;
      if (!own || (verdict !== null && !WITHOUT.has(verdict.state))) continue;
      const why = verdict === null ? 'about to be looked up' : `${verdict.state}: ${verdict.reason}`;
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
    const fresh = { verdict: null, certificate: null, dns: null, busy: false };
    return { wanted, fraction, since: now, nextAt: now, ...fresh };
  }

  /** Looks at the names whose time has come, and sleeps until the next one's. */
  #tick(): void {
    clearTimeout(this.#timer);
    if (this.#stop.signal.aborted) return;
    const now = this.#deps.now();
    const idle = [...this.#names.values()].filter(({ busy }) => !busy);
    const due = idle.filter(({ nextAt }) => nextAt <= now).sort((a, b) => a.nextAt - b.nextAt);
    for (const name of due.slice(0, AT_ONCE - this.#busy)) {
      const ended = this.#attend(name)
        .catch((cause: unknown) => this.#stumble(name, cause))
        .finally(() => {
          this.#ended = this.#ended.filter((one) => one !== ended);
        });
      this.#ended.push(ended);
    }
    // Of more than may be looked at together, the end of each look wakes the next.
    if (this.#busy >= AT_ONCE) return;
    const next = Math.min(...idle.map(({ nextAt }) => nextAt).filter((at) => at > now));
    const pause = Math.min(LONGEST_TIMER_MS, Math.max(1, next - now));
    this.#timer = setTimeout(() => this.#tick(), pause).unref();
  }

  async #attend(name: Tracked): Promise<void> {
    name.busy = true;
    this.#busy += 1;
    const { host } = name.wanted;
    const [certificate, dns] = await Promise.all([
      this.#deps.store.read(host).catch(() => null),
      this.#lookUp(host),
    ]);
    this.#busy -= 1;
    // Whatever becomes of this name: its order may take hours, and others wait for their look.
    this.#tick();
    if (this.#gone(name)) return;
    name.certificate = certificate;
    name.dns = dns instanceof Error ? null : dns;
    const verdict = this.#judge(name, dns);
    this.#say(name, verdict);
    if (verdict.order) {
      const outcome = await this.#deps.orders.place(host, certificate?.notAfter ?? 0, (reason) =>
        this.#say(name, { ...verdict, reason }),
      );
      if (!this.#gone(name)) this.#settle(name, dns, outcome);
    }
    name.busy = false;
    this.#tick();
  }

  /** What nobody foresaw costs one name its turn, not the daemon its life; the reason says it to a person. */
  #stumble(name: Tracked, cause: unknown): void {
    name.busy = false;
    if (this.#gone(name)) return;
    const state = name.verdict?.state ?? 'pending_certificate';
    const reason = `it can’t be seen to: ${cause instanceof Error ? cause.message : String(cause)}`;
    this.#say(name, { state, reason, order: false, nextAt: this.#deps.now() + STUMBLED_MS });
    this.#tick();
  }

  #settle(name: Tracked, dns: DnsAnswer | Error, outcome: OrderOutcome): void {
    const renewed = 'facts' in outcome;
    if (renewed) name.certificate = outcome.facts;
    const verdict = this.#judge(name, dns);
    if ('notYet' in outcome) this.#say(name, { ...verdict, reason: outcome.notYet });
    else this.#say(name, verdict);
    // A renewed certificate is another file for the proxy, though the name is as live as before.
    if (renewed) this.#onChange(name.wanted.site);
  }

  #judge({ wanted, certificate, since, fraction }: Tracked, dns: DnsAnswer | Error): CertificateVerdict {
    const { host, expected } = wanted;
    const failure = this.#deps.orders.failure(host);
    return judgeCertificate({ host, expected, dns, certificate, failure, since, fraction }, this.#deps.now());
  }

  #say(name: Tracked, verdict: CertificateVerdict): void {
    const before = name.verdict;
    name.verdict = verdict;
    name.nextAt = verdict.nextAt;
    if (before?.state === verdict.state && before.reason === verdict.reason) return;
    if (before !== null && before.state !== verdict.state) name.since = this.#deps.now();
    this.#onChange(name.wanted.site);
  }

  /** An `Error` in a person's words where DNS couldn't be asked: that says nothing about the name. */
  async #lookUp(host: string): Promise<DnsAnswer | Error> {
    const { lookup } = this.#deps;
    try {
      const [addresses, alias] = await Promise.all([lookup.addresses(host), lookup.alias(host)]);
      return { addresses, alias };
    } catch (cause) {
      const why = cause instanceof Error && 'code' in cause ? cause.code : cause;
      return new Error(`${host} can’t be looked up (${String(why)})`, { cause });
    }
  }

  #gone(name: Tracked): boolean {
    return this.#stop.signal.aborted || this.#names.get(name.wanted.host) !== name;
  }
}
