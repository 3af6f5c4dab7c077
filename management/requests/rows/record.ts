import { z } from 'zod';

/** The methods that a record names; each other one is `other`. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'] as const;
/** GA4's rule for event names. */
const EVENT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;
const MOST_MEMBERS = 100;

const octets = z.number().nonnegative().nullable().catch(null);
const shortText = z.string().max(100).nullable().catch(null);
const members = <Value extends z.ZodType>(value: Value) =>
  z
    .record(z.string().max(100), value)
    .refine((all) => Object.keys(all).length <= MOST_MEMBERS)
    .nullable()
    .catch(null);
const count = z.number().int().nonnegative();

/**
 * A record of the edge (docs/logs.md) as the API shows it. Members that are not named here are dropped, so that nothing
 * else is kept or answered. Records of earlier releases lack some members: they get `null`, `false` or `{}`.
 */
export const recordedRequest = z.object({
  time: z.iso.datetime(),
  requestId: z.string().max(200),
  site: shortText.meta({ description: 'the site’s id; null: the host was unknown' }),
  container: shortText.meta({ description: 'the container’s id' }),
  method: z.enum(METHODS).catch('other'),
  route: z.string().max(300).catch('').meta({ description: 'the pattern, never the path; empty: none' }),
  status: z.number().int().min(100).max(999),
  duration: z
    .number()
    .nonnegative()
    .catch(0)
    .meta({ description: 'milliseconds until the answer’s headers' }),
  cache: z.enum(['hit', 'miss', 'stale', 'bypass']).nullable().catch(null),
  colo: shortText,
  country: shortText,
  bytesIn: octets,
  bytesOut: octets,
  bot: z.boolean().nullable().catch(null),
  consent: z.enum(['all', 'analytics', 'ads', 'none']).nullable().catch(null),
  events: z
    .record(z.string().regex(EVENT_NAME), count)
    .refine((all) => Object.keys(all).length <= MOST_MEMBERS)
    .catch({})
    .meta({ description: 'GA4 events of the request by name' }),
  webContainerVersion: z
    .string()
    .regex(/^\d{1,20}$/)
    .nullable()
    .catch(null),
  signals: members(z.boolean()),
  plugins: members(z.number()).meta({ description: 'milliseconds by plugin' }),
  error: shortText,
  cause: z.string().max(1_000).nullable().catch(null),
  counters: members(count).meta({ description: 'what plugins counted, as `<plugin>.<name>`' }),
  probe: z.boolean().catch(false).meta({ description: 'a request of Tagyard’s own probes' }),
});
export type RecordedRequest = z.output<typeof recordedRequest>;

/** A request with its place in the order of a list's pages: the newest first, then by batch and index, descending. */
export interface RequestRow extends RecordedRequest {
  /** `<batch>.<index>`: the same for every copy of the record. */
  readonly id: string;
}

/** Where a row is in the order of pages. */
export interface RowKey {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly batch: string;
  readonly index: number;
}

export interface KeyedRow extends RowKey {
  readonly row: RequestRow;
}

/** The search stores the index as an INTEGER of 32 bits. */
const MOST_INDEX = 2_147_483_647;
const place = z.object({ batch: z.uuid(), index: z.number().int().min(0).max(MOST_INDEX) });
/** Perhaps half of a surrogate pair. DuckDB refuses such a line, and with it all other lines of the file. */
const SURROGATE = /\\ud[89a-f]/i;

/**
 * The record of a line, or `null` if the line is no record. Records of earlier releases don't name their place:
 * `fallback` is the key of their object and the number of the line. If it is `null`, such records count as invalid.
 */
export function keyedRow(line: string, fallback: Pick<RowKey, 'batch' | 'index'> | null): KeyedRow | null {
  let value: unknown;
  try {
    value = JSON.parse(line, SURROGATE.test(line) ? wellFormed : undefined);
  } catch {
    return null;
  }
  const record = recordedRequest.safeParse(value).data;
  const own = place.safeParse(value).data ?? fallback;
  if (record === undefined || own === null) return null;
  return keyed(record, own);
}

const wellFormed = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed() : value;

function keyed(record: RecordedRequest, { batch, index }: Pick<RowKey, 'batch' | 'index'>): KeyedRow {
  return { at: Date.parse(record.time), batch, index, row: { id: `${batch}.${index}`, ...record } };
}

/** The order of pages, for `Array.sort`. */
export function compareRows(a: RowKey, b: RowKey): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.batch !== b.batch) return a.batch < b.batch ? 1 : -1;
  return b.index - a.index;
}
