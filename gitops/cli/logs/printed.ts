import { styleText } from 'node:util';
import { createClient } from '../../../base/client/client.ts';
import type { operations } from '../../../base/client/generated/management-api.d.ts';
import { counted } from '../../../base/text.ts';
import { type ContainerRequests, type Gap, liveRows, orCliError } from './requests.ts';

/** At most this many past lines are printed. They are held in memory: the API sends the newest first. */
const MOST = 10_000;
const PAGE = 1_000;
const COLOURS = { info: 'green', warning: 'yellow', error: 'red' } as const;

type Query = NonNullable<operations['listContainerLogs']['parameters']['query']>;
export type LogFilters = Omit<Query, 'from' | 'to' | 'limit' | 'cursor'>;
export type ShownLog =
  operations['listContainerLogs']['responses'][200]['content']['application/json']['logs'][number];

interface PastLogs {
  /** The oldest first. */
  readonly logs: readonly ShownLog[];
  /** There are older ones. */
  readonly isCut: boolean;
}

/** What a container's tag servers have printed. Throws `CliError`. */
export async function pastLogs(
  { url, token, container }: ContainerRequests,
  query: LogFilters & Pick<Query, 'from'>,
): Promise<PastLogs> {
  const client = createClient({ url, token });
  const logs: ShownLog[] = [];
  let cursor: string | undefined;
  do {
    const page = { ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const params = { path: { id: container }, query: page };
    const { data } = await orCliError(url, client.get('/server-containers/{id}/container-logs', { params }));
    logs.push(...data.logs);
    cursor = data.next ?? undefined;
  } while (cursor !== undefined && logs.length < MOST);
  const isCut = cursor !== undefined || logs.length > MOST;
  return { logs: logs.slice(0, MOST).reverse(), isCut };
}

/** Follows what is printed after the line `last`. It continues after an interruption. Throws `CliError`. */
export function liveLogs(
  access: ContainerRequests,
  filters: LogFilters,
  last: string | undefined,
): AsyncGenerator<ShownLog | Gap> {
  return liveRows(access, { path: 'container-logs/live', row: 'log' }, filters, last);
}

export function renderLog(line: ShownLog): string {
  const { time, level, source, name, type, eventName, requestMethod, requestUrl, requestId } = line;
  const { responseStatusCode, message, dropped } = line;
  const lost =
    dropped === null ? null : `(${counted(dropped, 'line before was', 'lines before were')} not kept)`;
  const said = [
    name,
    type,
    eventName,
    requestMethod,
    requestUrl,
    responseStatusCode,
    message,
    lost,
    requestId,
  ];
  const text = said.filter((part) => part !== null).join(' ');
  return `${time}  ${styleText(COLOURS[level], level.padEnd(7))}  ${source.padEnd(12)}  ${text}\n`;
}
