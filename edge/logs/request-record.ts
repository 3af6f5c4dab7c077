/** Milliseconds that plugins cost a request, by plugin name. */
export type Timings = Record<string, number>;

/** One record per request: no cookie value, no full address, no query string. Times in milliseconds. */
export interface RequestRecord {
  readonly time: string;
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern: the path itself can hold a token or say something about a person. */
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
  /** Why a call of another server failed. */
  readonly cause: string | null;
}

/** A data point of Analytics Engine. */
interface DataPoint {
  readonly indexes: string[];
  readonly blobs: string[];
  readonly doubles: number[];
}

/**
 * Analytics Engine's limits in octets: 96 for the index, 16 KB for all blobs together, of which there are eleven. It drops
 * a whole data point that exceeds the limits, so texts are truncated.
 */
const MAX_INDEX_OCTETS = 96;
const MAX_BLOB_OCTETS = 1450;

/**
 * Index: the site. Blobs: method, route, error, cache, colo, country, request id, the signals that were true,
 * container, plugins with their milliseconds, cause. Doubles: status, duration.
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
    record.cause,
  ];
  return {
    indexes: [truncate(record.site, MAX_INDEX_OCTETS)],
    blobs: texts.map((text) => truncate(text, MAX_BLOB_OCTETS)),
    doubles: [record.status, record.duration],
  };
}

/** The longest prefix of whole characters that fits into `octets` of UTF-8. */
function truncate(text: string | null, octets: number): string {
  // A UTF-16 unit takes at most three octets, so most texts need no encoding to be measured.
  if (text === null || text.length * 3 <= octets) return text ?? '';
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(octets)).read);
}
