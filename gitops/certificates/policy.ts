import type { CertificateState } from '../report/report.ts';

/** There is no TLS that a client would take. */
export const WITHOUT: ReadonlySet<CertificateState> = new Set([
  'pending_dns',
  'pending_certificate',
  'expired',
]);

/** Where a name must lead, so that the authority and visitors arrive at this host. */
export interface Expected {
  readonly addresses: readonly string[];
  /** A name of the site's that leads there, for those who'd rather have a CNAME; `null`: the record is our own. */
  readonly alias: string | null;
}

/** What DNS says of a name; no addresses and no alias: nothing. */
export interface DnsAnswer {
  readonly addresses: readonly string[];
  /** The target of a CNAME, `null` where there is none. */
  readonly alias: string | null;
}

/** Times are milliseconds since 1970. */
export interface Lifetime {
  readonly notBefore: number;
  readonly notAfter: number;
}

export interface Facts {
  readonly host: string;
  readonly expected: Expected;
  /** `Error`: it couldn't be looked up, which says nothing about the name. */
  readonly dns: DnsAnswer | Error;
  readonly certificate: Lifetime | null;
  /** The last order, where it failed. */
  readonly failure: { readonly message: string; readonly retryAt: number } | null;
  /** Since when it has been waiting for DNS or a certificate. */
  readonly since: number;
  /** The name's own share of all jitter, 0 to 1, so that names that came together part. */
  readonly fraction: number;
}

export interface CertificateVerdict {
  readonly state: CertificateState;
  /** For a person who can act on it; empty where there is nothing to say. */
  readonly reason: string;
  /** A certificate may be ordered now. */
  readonly order: boolean;
  /** When to look again, whatever happens. */
  readonly nextAt: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A record that is being made shows within seconds; one that nobody makes is asked for ever more seldom. */
const SOONEST_MS = 2_000;
const LATEST_MS = 10 * MINUTE_MS;
/** How often the DNS of a name that is well is looked at. */
const WATCH_MS = 6 * HOUR_MS;

/**
 * When a certificate is renewed: with a third of its life left, or up to a thirtieth of it sooner, by the name's own
 * `fraction` (Let's Encrypt's integration guide; at 90 days: between day 57 and day 60).
 */
export function renewalAt({ notBefore, notAfter }: Lifetime, fraction: number): number {
  const life = notAfter - notBefore;
  return notAfter - life / 3 - (fraction * life) / 30;
}

/** What the name's state is and what is to be done about it now, from what is known of it. */
export function judgeCertificate(facts: Facts, now: number): CertificateVerdict {
  const { certificate, failure, dns, fraction } = facts;
  const misled = dns instanceof Error ? null : dnsFault(facts.host, dns, facts.expected);
  const unknown = dns instanceof Error ? dns.message : null;
  const obstacle = misled ?? unknown;
  const soon = now + waiting(now - facts.since) * (1 - fraction / 4);
  const held = failure !== null && failure.retryAt > now;

  if (certificate === null || certificate.notAfter <= now) {
    const ended = certificate === null ? null : `the certificate ended on ${date(certificate.notAfter)}`;
    const state = ended !== null ? 'expired' : obstacle !== null ? 'pending_dns' : 'pending_certificate';
    if (obstacle !== null) return { state, reason: sentence(ended, obstacle), order: false, nextAt: soon };
    if (held)
      return { state, reason: sentence(ended, tried(failure)), order: false, nextAt: failure.retryAt };
    return { state, reason: sentence(ended, 'a certificate is being ordered'), order: true, nextAt: soon };
  }
  const renewAt = renewalAt(certificate, fraction);
  const watchAt = now + WATCH_MS * (1 - fraction / 2);
  if (misled !== null) {
    const until = `; its certificate ends on ${date(certificate.notAfter)}`;
    return { state: 'drifted', reason: misled + until, order: false, nextAt: Math.min(soon, watchAt) };
  }
  if (renewAt > now) return { state: 'live', reason: '', order: false, nextAt: Math.min(renewAt, watchAt) };
  const due = `due for renewal, ends on ${date(certificate.notAfter)}`;
  const ends = certificate.notAfter;
  if (unknown !== null) {
    return { state: 'live', reason: sentence(due, unknown), order: false, nextAt: Math.min(soon, ends) };
  }
  if (held) {
    const nextAt = Math.min(failure.retryAt, ends);
    return { state: 'live', reason: sentence(due, tried(failure)), order: false, nextAt };
  }
  return { state: 'live', reason: due, order: true, nextAt: Math.min(soon, ends) };
}

/** What is known of a name whose certificate is an operator's to put there. */
export interface FilesFacts {
  /** What is served; `null`: there is none. */
  readonly certificate: Lifetime | null;
  /** What is wrong with the operator's files. */
  readonly fault: string | null;
  /** What is served is a copy of earlier files, since none of those of now is any use. */
  readonly isOutdated: boolean;
}

/** The same where nothing is ordered, so that DNS is no condition: only the operator's files are. */
export function judgeFiles(
  { certificate, fault, isOutdated }: FilesFacts,
  now: number,
): Pick<CertificateVerdict, 'state' | 'reason'> {
  if (certificate === null) return { state: 'pending_certificate', reason: fault ?? '' };
  const { notAfter } = certificate;
  if (notAfter <= now) {
    return { state: 'expired', reason: fault ?? `the certificate ended on ${date(notAfter)}` };
  }
  if (!isOutdated) return { state: 'live', reason: fault ?? '' };
  const meanwhile = `the last good one is served on, and ends on ${date(notAfter)}`;
  return { state: 'drifted', reason: sentence(fault, meanwhile) };
}

/** What is wrong with a name's DNS and how it must be, `null` where it is well. */
export function dnsFault(host: string, { addresses, alias }: DnsAnswer, expected: Expected): string | null {
  const wanted = expected.addresses.join(' or ');
  const must = expected.alias === null ? wanted : `${wanted} or a CNAME to ${expected.alias}`;
  const foreign = addresses.filter((address) => !expected.addresses.includes(address));
  if (foreign.length > 0) return `${host} resolves to ${foreign.join(', ')}, must be ${must}`;
  if (addresses.length > 0) return null;
  if (alias !== null) return `${host} is a CNAME to ${alias}, which has no address; it must be ${must}`;
  return `${host} has no address, must be ${must}`;
}

/** A quarter of the time that it has waited so far, within limits. */
function waiting(age: number): number {
  return Math.min(LATEST_MS, Math.max(SOONEST_MS, age / 4));
}

function tried({ message, retryAt }: { message: string; retryAt: number }): string {
  return `${message}; tried again at ${moment(retryAt)}`;
}

function sentence(...parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join('; ');
}

function date(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function moment(time: number): string {
  return `${new Date(time).toISOString().slice(0, 16)}Z`;
}
