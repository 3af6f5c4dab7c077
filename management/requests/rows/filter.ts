import type { RecordedRequest } from './record.ts';

/**
 * Containers with deleted requests, each with the time before which those are deleted (milliseconds since the epoch).
 */
export type DeletedRequests = ReadonlyMap<string, number>;

/** Which requests are asked for. A member that is missing asks for all. */
export interface RequestFilter {
  /** Ids of containers; `null`: of all, and requests of unknown hosts. */
  readonly containers: readonly string[] | null;
  readonly route?: string | undefined;
  /** A status (`404`) or a class of them (`5xx`). */
  readonly status?: string | undefined;
  readonly cache?: string | undefined;
  readonly error?: string | undefined;
  readonly requestId?: string | undefined;
  readonly method?: string | undefined;
  readonly country?: string | undefined;
  /** Whether Tagyard's own probes are shown too. */
  readonly probes: boolean;
  /** Requests that are not shown, even where they are still stored. */
  readonly deleted?: DeletedRequests | undefined;
}

/** Members of a filter that a row's member of the same name must equal. */
export const EQUAL_MEMBERS = ['route', 'cache', 'error', 'requestId', 'method', 'country'] as const;

/** The lowest and the highest status that is asked for. */
export function statusRange(status: string): readonly [first: number, last: number] {
  if (!status.endsWith('xx')) return [Number(status), Number(status)];
  const first = Number(status[0]) * 100;
  return [first, first + 99];
}

export function isDeletedRequest({ container, time }: RecordedRequest, deleted: DeletedRequests): boolean {
  const until = container === null ? undefined : deleted.get(container);
  return until !== undefined && Date.parse(time) < until;
}

export function isAskedFor(row: RecordedRequest, filter: RequestFilter): boolean {
  const { containers, status, probes } = filter;
  if (containers !== null && (row.container === null || !containers.includes(row.container))) return false;
  if (row.probe && !probes) return false;
  if (filter.deleted !== undefined && isDeletedRequest(row, filter.deleted)) return false;
  if (status !== undefined) {
    const [first, last] = statusRange(status);
    if (row.status < first || row.status > last) return false;
  }
  return EQUAL_MEMBERS.every((name) => filter[name] === undefined || filter[name] === row[name]);
}
