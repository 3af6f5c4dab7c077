import type { components } from '../../../../base/client/index.ts';
import { api } from './api.ts';
import { type RequestTimes, rangeOf } from './requests.ts';

export type TagLine = components['schemas']['ContainerLog'];

export const LOG_LEVELS = ['info', 'warning', 'error'] as const satisfies readonly TagLine['level'][];
export const LOG_KINDS = ['tag', 'text', 'refusal', 'dropped'] as const satisfies readonly TagLine['kind'][];

/** How long before and after its arrival at the edge a request may have lines; milliseconds. */
const BEFORE_MS = 5 * 60_000;
const AFTER_MS = 60 * 60_000;

/** Which lines are asked for, as the page’s address has it. */
export interface LogChoice {
  readonly q?: string;
  readonly level?: TagLine['level'];
  readonly kind?: TagLine['kind'];
}

/** A page of lines, the newest first. `since`: time of the oldest line that is kept; `null`: none is. */
export interface TagLinePage {
  readonly items: readonly TagLine[];
  readonly next: string | null;
  readonly since: string | null;
}

/** Values of an address that the API would refuse are ignored. */
export function logChoiceOf(address: Readonly<Record<string, string>>): LogChoice {
  const q = address.q?.slice(0, 200);
  const level = LOG_LEVELS.find((one) => one === address.level);
  const kind = LOG_KINDS.find((one) => one === address.kind);
  return {
    ...(q ? { q } : {}),
    ...(level === undefined ? {} : { level }),
    ...(kind === undefined ? {} : { kind }),
  };
}

interface LogQuery extends LogChoice {
  readonly requestId?: string;
  readonly from: string;
  readonly to?: string;
  readonly cursor?: string;
}

async function readLogs(id: string, query: LogQuery): Promise<TagLinePage> {
  const params = { path: { id }, query };
  const { data } = await api.get('/server-containers/{id}/container-logs', { params });
  return { items: data.logs, next: data.next, since: data.since };
}

const at = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor });

/** Throws `ApiProblem` for any answer other than a 2xx. */
export async function searchLogs(
  container: string,
  { choice, times }: { readonly choice: LogChoice; readonly times: RequestTimes },
  cursor: string | undefined,
): Promise<TagLinePage> {
  return await readLogs(container, { ...choice, ...rangeOf(times), ...at(cursor) });
}

/** The lines of one request, which the edge got at `time`. Throws as `searchLogs` does. */
export async function readRequestLogs(
  container: string,
  { requestId, time }: { readonly requestId: string; readonly time: string },
  cursor: string | undefined,
): Promise<TagLinePage> {
  const [from, to] = [Date.parse(time) - BEFORE_MS, Date.parse(time) + AFTER_MS];
  const range = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  return await readLogs(container, { requestId, ...range, ...at(cursor) });
}

/** The stream of what a container’s tag servers print. */
export function liveLogsAddress(container: string, choice: LogChoice): string {
  const query = new URLSearchParams({ ...choice }).toString();
  const path = `/server-containers/${encodeURIComponent(container)}/container-logs/live`;
  return query === '' ? path : `${path}?${query}`;
}
