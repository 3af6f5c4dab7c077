import { foreignRemedy } from '../../base/foreign-addresses.ts';
import type { CertificateState } from '../report/report.ts';

/** States of a name that has no certificate that a browser accepts. */
export const WITHOUT: ReadonlySet<CertificateState> = new Set([
  'pending_dns',
  'pending_certificate',
  'expired',
]);

/** What a name must resolve to, so that the authority and visitors reach this host. */
export interface Expected {
  readonly addresses: readonly string[];
  /** A name of the site that a CNAME may point to; `null` if Tagyard writes the record itself. */
  readonly alias: string | null;
}

/** The DNS answer for a name. No addresses and no alias: the name has none of these records. */
export interface DnsAnswer {
  readonly addresses: readonly string[];
  /** The target of its CNAME; `null` without one. */
  readonly alias: string | null;
}

/** Times are milliseconds since 1970. */
interface Lifetime {
  readonly notBefore: number;
  readonly notAfter: number;
}

export interface Facts {
  readonly host: string;
  readonly expected: Expected;
  /** `Error` if DNS gave no answer, which says nothing about the name. */
  readonly dns: DnsAnswer | Error;
  /** Why CAA records forbid an order, and the record to set; `null` if they don't. */
  readonly caa: string | null;
  readonly certificate: Lifetime | null;
  /** The last order, if it failed. */
  readonly failure: { readonly message: string; readonly retryAt: number } | null;
  /** When the current state began. */
  readonly since: number;
  /** The name's own jitter, 0 to 1: names that were added together are checked at different times. */
  readonly fraction: number;
}

export interface CertificateVerdict {
  readonly state: CertificateState;
  /** The reason for the state, as text for the operator; empty if there is nothing to do. */
  readonly reason: string;
  /** A certificate may be ordered now. */
  readonly order: boolean;
  /** Time of the next check. */
  readonly nextAt: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A new record shows within seconds. A record that stays missing is checked ever less often. */
const SHORTEST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 10 * MINUTE_MS;
/** The longest time between two checks of a `live` name's DNS. */
const WATCH_MS = 6 * HOUR_MS;

/**
 * When a certificate is renewed: when a third of its life is left, or earlier by up to a thirtieth of its life,
 * depending on the name's own `fraction` (Let's Encrypt's integration guide; at 90 days: between day 57 and day 60).
 */
export function renewalAt({ notBefore, notAfter }: Lifetime, fraction: number): number {
  const life = notAfter - notBefore;
  return notAfter - life / 3 - (fraction * life) / 30;
}

/** The state of a name and whether to order a certificate now. */
export function judgeCertificate(facts: Facts, now: number): CertificateVerdict {
  const { certificate, failure, dns, fraction, caa } = facts;
  const dnsProblem = dns instanceof Error ? null : dnsFault(facts.host, dns, facts.expected);
  const noAnswer = dns instanceof Error ? dns.message : null;
  const elsewhere = dnsProblem ?? noAnswer;
  const obstacle = sentence(elsewhere, caa) || null;
  const soon = now + waitAfter(now - facts.since) * (1 - fraction / 4);
  const mustWait = failure !== null && failure.retryAt > now;
  // What prevents an order may change meanwhile.
  const retryAt = Math.min(failure?.retryAt ?? now, now + LONGEST_WAIT_MS);

  if (certificate === null || certificate.notAfter <= now) {
    const ended = certificate === null ? null : `the certificate ended on ${date(certificate.notAfter)}`;
    const state = ended !== null ? 'expired' : elsewhere !== null ? 'pending_dns' : 'pending_certificate';
    if (obstacle !== null) return { state, reason: sentence(ended, obstacle), order: false, nextAt: soon };
    if (mustWait) return { state, reason: sentence(ended, tried(failure)), order: false, nextAt: retryAt };
    return { state, reason: sentence(ended, 'a certificate is being ordered'), order: true, nextAt: soon };
  }
  const renewAt = renewalAt(certificate, fraction);
  const watchAt = now + WATCH_MS * (1 - fraction / 2);
  if (dnsProblem !== null) {
    const until = `; its certificate ends on ${date(certificate.notAfter)}`;
    return { state: 'drifted', reason: dnsProblem + until, order: false, nextAt: Math.min(soon, watchAt) };
  }
  if (renewAt > now) return { state: 'live', reason: '', order: false, nextAt: Math.min(renewAt, watchAt) };
  const due = `due for renewal, ends on ${date(certificate.notAfter)}`;
  const ends = certificate.notAfter;
  if (obstacle !== null) {
    return { state: 'live', reason: sentence(due, obstacle), order: false, nextAt: Math.min(soon, ends) };
  }
  if (mustWait) {
    const nextAt = Math.min(retryAt, ends);
    return { state: 'live', reason: sentence(due, tried(failure)), order: false, nextAt };
  }
  return { state: 'live', reason: due, order: true, nextAt: Math.min(soon, ends) };
}

/** What is known of a name whose certificate comes from an operator's files. */
interface FilesFacts {
  /** The certificate in use; `null` without one. */
  readonly certificate: Lifetime | null;
  /** What is wrong with the operator's files. */
  readonly fault: string | null;
  /** The certificate in use is a copy of earlier files, because the current files are invalid. */
  readonly isOutdated: boolean;
}

/** The state of a name with an operator's files. Nothing is ordered, so DNS doesn't matter. */
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
  const inUse = `the last valid one stays in use and ends on ${date(notAfter)}`;
  return { state: 'drifted', reason: sentence(fault, inUse) };
}

/** Why a name's DNS is wrong and what it must be; `null` if it is correct. */
export function dnsFault(host: string, { addresses, alias }: DnsAnswer, expected: Expected): string | null {
  const wanted = expected.addresses.join(' or ');
  const must = expected.alias === null ? wanted : `${wanted} or a CNAME to ${expected.alias}`;
  const isOwn = (address: string) => expected.addresses.includes(address);
  const foreign = addresses.filter((address) => !isOwn(address));
  if (foreign.length > 0) {
    const remedy = foreignRemedy(foreign, addresses.filter(isOwn));
    return sentence(`${host} resolves to ${foreign.join(', ')}`, remedy, `it must be ${must}`);
  }
  if (addresses.length > 0) return null;
  if (alias !== null) return `${host} is a CNAME to ${alias}, which has no address; it must be ${must}`;
  return `${host} has no address; it must be ${must}`;
}

/** A quarter of the time waited so far, within limits. */
function waitAfter(age: number): number {
  return Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, age / 4));
}

function tried({ message, retryAt }: { message: string; retryAt: number }): string {
  return `${message}; next attempt at ${moment(retryAt)}`;
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
