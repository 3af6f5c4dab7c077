import type { components } from '../../../../base/client/index.ts';
import { api } from './api.ts';

export type EdgeRequest = components['schemas']['EdgeRequest'];

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The spans of time, up to now, that a search can cover. The API searches 31 days at most. */
export const REQUEST_SPANS = [
  { value: '15m', name: 'Last 15 minutes', ms: 15 * MINUTE },
  { value: '1h', name: 'Last hour', ms: HOUR },
  { value: '24h', name: 'Last 24 hours', ms: DAY },
  { value: '7d', name: 'Last 7 days', ms: 7 * DAY },
  { value: '30d', name: 'Last 30 days', ms: 30 * DAY },
] as const;
const USUAL_SPAN = REQUEST_SPANS[2];

export const CACHE_RESULTS = ['hit', 'miss', 'stale', 'bypass'] as const;

/** A status or a class of them, as the API takes it. */
const STATUS = /^[1-5](?:\d\d|xx)$/;

/** Which requests are asked for, as the page's address has it. */
export interface RequestChoice {
  readonly container?: string;
  readonly requestId?: string;
  readonly route?: string;
  readonly status?: string;
  readonly cache?: (typeof CACHE_RESULTS)[number];
  readonly error?: string;
  readonly probes?: 'true';
}

/** The times of a search: a span up to now, or fixed ones in milliseconds since the epoch. */
export type RequestTimes =
  | { readonly span: (typeof REQUEST_SPANS)[number] }
  | { readonly from: number; readonly to: number };

type Address = Readonly<Record<string, string>>;

/** A status or cache result that the API would refuse is ignored. */
export function requestFilterOf({ container, requestId, route, status, cache, error, probes }: Address) {
  const result = CACHE_RESULTS.find((one) => one === cache);
  return {
    ...(container ? { container } : {}),
    ...(requestId ? { requestId } : {}),
    ...(route ? { route } : {}),
    ...(status && STATUS.test(status) ? { status } : {}),
    ...(result === undefined ? {} : { cache: result }),
    ...(error ? { error } : {}),
    ...(probes ? { probes: 'true' } : {}),
  } satisfies RequestChoice;
}

export function requestTimesOf({ span, from = '', to = '' }: Address): RequestTimes {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  if (start < end) return { from: start, to: end };
  return { span: REQUEST_SPANS.find(({ value }) => value === span) ?? USUAL_SPAN };
}

/** The parameters that ask the API for these times. Without `to`, the API answers up to now. */
export function rangeOf(times: RequestTimes): { from: string; to?: string } {
  if ('span' in times) return { from: new Date(Date.now() - times.span.ms).toISOString() };
  return { from: new Date(times.from).toISOString(), to: new Date(times.to).toISOString() };
}

/** A page of a search. `missing`: days that are still being read. */
export interface RequestPage {
  readonly items: readonly EdgeRequest[];
  readonly next: string | null;
  readonly missing: readonly string[];
}

export async function searchRequests(
  filter: RequestChoice,
  times: RequestTimes,
  cursor: string | undefined,
): Promise<RequestPage> {
  const { data } = await api.get('/requests', {
    params: { query: { ...filter, ...rangeOf(times), ...(cursor === undefined ? {} : { cursor }) } },
  });
  const { requests, next, missing } = data;
  return { items: requests, next, missing };
}

/** The address at which the browser downloads all that match, with the session's cookie. */
export function exportAddress(format: 'ndjson' | 'csv', filter: RequestChoice, times: RequestTimes): string {
  return `/requests?${new URLSearchParams({ format, ...filter, ...rangeOf(times) })}`;
}

/** The stream of a container's requests; it takes the filter, but no time. */
export function liveAddress(container: string, { container: _, ...filter }: RequestChoice): string {
  const query = new URLSearchParams(filter).toString();
  const path = `/server-containers/${encodeURIComponent(container)}/requests/live`;
  return query === '' ? path : `${path}?${query}`;
}
