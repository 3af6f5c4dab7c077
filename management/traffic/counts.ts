import { HIT_ROUTES } from '../../plugins/document.ts';
import { latencyBucket, quantile } from './latency.ts';
import { countOf, type TrafficRecord } from './record.ts';

/**
 * Sums by name. One letter: `n` requests, `e` events, `i` and `o` octets in and out, `d` reports (`b`: positive) about
 * blockers, `t` bots, `x` errors, `h` lost hits. With a colon, by value: `r` route, `s` first digit of the status, `c` cache,
 * `k` country, `p` consent, `l` bucket of the latency, `v` version of the web container. Hours also have some sums by quarter:
 * `n1` requests of the second quarter, `n2`, `n3` (`withQuarter`).
 */
export type Counts = Map<string, number>;

const CACHES: readonly unknown[] = ['hit', 'miss', 'stale', 'bypass'];
const CONSENTS: readonly unknown[] = ['all', 'analytics', 'ads', 'none'];
const COUNTRY = /^[A-Z][A-Z0-9]$/;
const VERSION = /^\d{1,12}$/;

function add(counts: Counts, name: string, count: number): void {
  if (count !== 0) counts.set(name, (counts.get(name) ?? 0) + count);
}

export function addAll(counts: Counts, others: Iterable<readonly [string, number]>): void {
  for (const [name, count] of others) add(counts, name, count);
}

/** Adds one record. */
export function countRecord(counts: Counts, record: TrafficRecord): void {
  const { route, status, duration, cache, country, consent, signals, error, bot, webContainerVersion } =
    record;
  add(counts, 'n', 1);
  add(counts, `r:${route}`, 1);
  add(counts, `s:${status >= 100 && status < 600 ? Math.floor(status / 100) : 0}`, 1);
  add(counts, `l:${latencyBucket(duration)}`, 1);
  if (CACHES.includes(cache)) add(counts, `c:${cache}`, 1);
  if (typeof country === 'string' && COUNTRY.test(country)) add(counts, `k:${country}`, 1);
  if (CONSENTS.includes(consent)) add(counts, `p:${consent}`, 1);
  if (typeof error === 'string') {
    add(counts, 'x', 1);
    if (error === 'hit_refused' || HIT_ROUTES.includes(route)) add(counts, 'h', 1);
  }
  if (bot === true) add(counts, 't', 1);
  if (typeof webContainerVersion === 'string' && VERSION.test(webContainerVersion)) {
    add(counts, `v:${webContainerVersion}`, 1);
  }
  if (typeof signals === 'object' && signals !== null && 'adblock' in signals) {
    add(counts, 'd', 1);
    if (signals.adblock === true) add(counts, 'b', 1);
  }
  add(counts, 'i', countOf(record.bytesIn));
  add(counts, 'o', countOf(record.bytesOut));
  if (typeof record.events === 'object' && record.events !== null) {
    for (const value of Object.values(record.events)) add(counts, 'e', countOf(value));
  }
}

type ByValue = Record<string, number>;

/** What is shown of one span of time. */
export function presentCounts(counts: ReadonlyMap<string, number>) {
  const of = (name: string) => counts.get(name) ?? 0;
  const groups = new Map<string, [string, number][]>();
  for (const [name, value] of counts) {
    if (name[1] !== ':') continue;
    const letter = name.slice(0, 1);
    const group = groups.get(letter);
    if (group === undefined) groups.set(letter, [[name.slice(2), value]]);
    else group.push([name.slice(2), value]);
  }
  const valuesOf = (letter: string) => (groups.get(letter) ?? []).sort(([, a], [, b]) => b - a);
  const by = (letter: string): ByValue => Object.fromEntries(valuesOf(letter));
  const consent = by('p');
  const known = Object.values(consent).reduce((sum, value) => sum + value, 0);
  const latency = new Map(valuesOf('l').map(([bucket, value]) => [Number(bucket), value]));
  return {
    requests: of('n'),
    events: of('e'),
    routes: by('r'),
    statuses: Object.fromEntries(
      valuesOf('s').map(([digit, value]) => [digit === '0' ? 'other' : `${digit}xx`, value]),
    ),
    cache: by('c'),
    blocked: of('b'),
    reports: of('d'),
    errors: of('x'),
    lostHits: of('h'),
    latency: { p50: quantile(latency, 0.5), p95: quantile(latency, 0.95), p99: quantile(latency, 0.99) },
    consent,
    consentShare: known === 0 ? null : (consent.all ?? 0) / known,
    countries: by('k'),
    bytesIn: of('i'),
    bytesOut: of('o'),
    bots: of('t'),
    webContainerVersions: by('v'),
  };
}
