import type { ConsentState } from '../../plugins/consent.ts';

/** Milliseconds that plugins cost a request, by plugin name. */
export type Timings = Record<string, number>;

/**
 * One record per request. It has no cookie value, no full address and no query string. Of what a client sends, it has
 * only names from closed lists and names of events. Durations are in milliseconds.
 */
export interface RequestRecord {
  readonly time: string;
  /** The edge's own id of the request. A caller's id can be any text, so it is not stored. */
  readonly requestId: string;
  /** One of `METHODS`, or `other`. */
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
  /** Why a call to another server failed. */
  readonly cause: string | null;
  /** Octets of the bodies, as sent; null where they are unknown. */
  readonly bytesIn: number | null;
  readonly bytesOut: number | null;
  readonly bot: boolean;
  /** Null where the request says nothing about it. */
  readonly consent: ConsentState | null;
  /** How many events of each name the request has; see hit.ts. */
  readonly events: Readonly<Record<string, number>>;
  /** The version of the web container whose script is the answer; digits. */
  readonly webContainerVersion: string | null;
  /** What the plugins have counted, as `<plugin>.<name>`. */
  readonly counters: Readonly<Record<string, number>>;
  /** A probe of our own; see base/probe.ts. */
  readonly probe: boolean;
}

/** A record in the archive. The edge assigns batch and index: a batch counts once, however often it is sent. */
export interface ArchivedRecord extends RequestRecord {
  /** The batch that an isolate has sent, a UUID. */
  readonly batch: string;
  /** Its place in the batch, from 0. */
  readonly index: number;
}

/** The fields of a request's record that are collected while it is handled. */
export type Notes = {
  -readonly [Field in
    | 'route'
    | 'site'
    | 'container'
    | 'country'
    | 'cache'
    | 'signals'
    | 'error'
    | 'cause'
    | 'consent'
    | 'webContainerVersion']: RequestRecord[Field];
} & {
  readonly requestId: string;
  readonly events: Map<string, number>;
  readonly counters: Record<string, number>;
  /** What plugins say that the tag server is told of the visitor. */
  told: { readonly headers?: Readonly<Record<string, string>>; readonly address?: string | null };
  /** Resolves once the request's body has passed; undefined: nothing is counted in it. */
  passing?: Promise<void>;
};

const METHODS = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/;

/** A method as the record has it: a client can send any text as its method. */
export const knownMethod = (method: string): string => (METHODS.test(method) ? method : 'other');

/** A short name that the platform sets, such as a colo; null for any other value. */
export const platformName = (value: unknown): string | null =>
  typeof value === 'string' && /^[A-Za-z0-9-]{1,6}$/.test(value) ? value : null;

/** A body's octets as its headers state them, which the runtime enforces; null if unknown, 0 without a body. */
export function octetsOf(message: Request | Response): number | null {
  const stated = message.headers.get('content-length');
  // Reading `body` makes a stream, which costs more than the rest here.
  if (stated !== null) return Number(stated);
  return message.body ? null : 0;
}

/** A data point of Analytics Engine. */
interface DataPoint {
  readonly indexes: string[];
  readonly blobs: string[];
  readonly doubles: number[];
}

/**
 * Analytics Engine's limits in octets: 96 for the index, 16 KB for all blobs together, of which there are fourteen. It
 * drops a whole data point that exceeds the limits, so texts are truncated.
 */
const MAX_INDEX_OCTETS = 96;
const MAX_BLOB_OCTETS = 1140;

/** `name=1,other=2` */
const pairs = (values: Readonly<Record<string, number>>): string =>
  `${Object.entries(values).map(([name, value]) => `${name}=${value}`)}`;

/**
 * Index: the site. Blobs: method, route, error, cache, colo, country, request id, the signals that were true,
 * container, plugins with their milliseconds, cause, consent, events with their numbers, version of the web container.
 * Doubles: status, duration, octets of the request's and the answer's body (-1: unknown), bot, probe (0 or 1), number of
 * events, whether a blocker was reported (-1: there was no report), and when the request arrived in seconds since 1970. New
 * ones are appended: queries name them by their position.
 */
export function dataPoint(record: RequestRecord): DataPoint {
  const signals = Object.entries(record.signals ?? {}).flatMap(([name, on]) => (on ? [name] : []));
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
    pairs(record.plugins),
    record.cause,
    record.consent,
    pairs(record.events),
    record.webContainerVersion,
  ];
  return {
    indexes: [truncate(record.site, MAX_INDEX_OCTETS)],
    blobs: texts.map((text) => truncate(text, MAX_BLOB_OCTETS)),
    doubles: [
      record.status,
      record.duration,
      record.bytesIn ?? -1,
      record.bytesOut ?? -1,
      +record.bot,
      +record.probe,
      Object.values(record.events).reduce((sum, count) => sum + count, 0),
      +(record.signals?.adblock ?? -1),
      Date.parse(record.time) / 1000,
    ],
  };
}

/** The longest prefix of whole characters that fits into `octets` of UTF-8. */
function truncate(text: string | null, octets: number): string {
  // A UTF-16 unit takes at most three octets, so most texts need no encoding to be measured.
  if (text === null || text.length * 3 <= octets) return text ?? '';
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(octets)).read);
}
