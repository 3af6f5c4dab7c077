import type { Timings } from '../guard.ts';

/** Says that something happened which an operator should know of. Never given cookie values, addresses or queries. */
export type EventLog = (event: string, fields: Readonly<Record<string, unknown>>) => void;

/** Workers Logs and `wrangler tail` index JSON lines. */
export const consoleLog: EventLog = (event, fields) => console.warn(JSON.stringify({ event, ...fields }));

/** Keeps work alive past the answer. */
export type WaitUntil = (work: Promise<unknown>) => void;

/** One record a request; no cookie value, no full address, no query string. Times in milliseconds. */
export interface RequestRecord {
  readonly time: string;
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern, so that no token or path of a person's stands in the log. */
  readonly route: string;
  readonly status: number;
  readonly duration: number;
  readonly site: string | null;
  readonly container: string | null;
  readonly plugins: Timings;
  readonly cache: 'hit' | 'miss' | 'stale' | 'bypass' | null;
  readonly colo: string | null;
  readonly country: string | null;
  readonly signals: Readonly<Record<string, boolean>> | null;
  readonly error: string | null;
}

/** A point of Analytics Engine. */
export interface DataPoint {
  readonly indexes: string[];
  readonly blobs: string[];
  readonly doubles: number[];
}

/**
 * Analytics Engine's bounds in octets: of the index, and of all blobs together (16 KB), of which each of the ten gets
 * its tenth. A point beyond them would be dropped whole, so texts are cut.
 */
const MAX_INDEX = 96;
const MAX_BLOB = 1600;

/**
 * Index: the site. Blobs: method, route, error, cache, colo, country, request id, the signals that were true,
 * container, plugins with their milliseconds. Doubles: status, duration.
 */
export function dataPoint(record: RequestRecord): DataPoint {
  const signals = Object.entries(record.signals ?? {}).flatMap(([name, on]) => (on ? [name] : []));
  const plugins = Object.entries(record.plugins).map(([name, ms]) => `${name}=${ms}`);
  const texts = [
    record.method,
    record.route,
    record.error,
    record.cache,
    record.colo,
    record.country,
    record.requestId,
    `${signals}`,
    record.container,
    `${plugins}`,
  ];
  return {
    indexes: [cut(record.site, MAX_INDEX)],
    blobs: texts.map((text) => cut(text, MAX_BLOB)),
    doubles: [record.status, record.duration],
  };
}

/** The longest beginning of whole characters that has at most `octets` in UTF-8. */
function cut(text: string | null, octets: number): string {
  // No UTF-16 unit has more than three octets: most texts needn't be encoded to be measured.
  if (text === null || text.length * 3 <= octets) return text ?? '';
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(octets)).read);
}
