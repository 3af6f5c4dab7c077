import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from '../../../base/client/client.ts';
import type { operations } from '../../../base/client/generated/management-api.d.ts';
import { ApiProblem, problemFrom } from '../../../base/client/problem.ts';
import { CliError } from '../output/cli-error.ts';

/**
 * The most requests of the past that are printed: they are held in memory, because the API answers the newest first.
 */
const MOST = 10_000;
const PAGE = 1_000;
const RETRY_MS = 2_000;

type Query = NonNullable<operations['listContainerRequests']['parameters']['query']>;
export type RequestFilters = Omit<Query, 'from' | 'to' | 'limit' | 'cursor' | 'format'>;
export type ShownRequest =
  operations['listContainerRequests']['responses'][200]['content']['application/json']['requests'][number];

export interface ContainerRequests {
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly container: string;
  /** Milliseconds before a stream that ended is opened again; default: 2000. */
  readonly retryMs?: number;
}

interface PastRequests {
  /** The oldest first. */
  readonly requests: readonly ShownRequest[];
  /** There are older ones. */
  readonly isCut: boolean;
  /** Days (UTC) whose requests can't all be searched yet. */
  readonly missing: readonly string[];
}

/** A container's requests of the past. Throws `CliError`. */
export async function pastRequests(
  { url, token, container }: ContainerRequests,
  query: RequestFilters & Pick<Query, 'from' | 'to'>,
): Promise<PastRequests> {
  const client = createClient({ url, token });
  const requests: ShownRequest[] = [];
  const missing = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = { ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const params = { path: { id: container }, query: page };
    const { data } = await orCliError(url, client.get('/server-containers/{id}/requests', { params }));
    requests.push(...data.requests);
    for (const day of data.missing) missing.add(day);
    cursor = data.next ?? undefined;
  } while (cursor !== undefined && requests.length < MOST);
  const isCut = cursor !== undefined || requests.length > MOST;
  return { requests: requests.slice(0, MOST).reverse(), isCut, missing: [...missing] };
}

/** A gap in the stream: the number of requests that were not sent; `null`: unknown. */
export interface Gap {
  readonly missed: number | null;
}

/** What to follow: the end of the path, and the name of the events that carry a row. */
interface Followed {
  readonly path: string;
  readonly row: string;
}

/**
 * A container's requests as they arrive, after the row `last`. It continues after an interruption. Throws `CliError`.
 */
export function liveRequests(
  access: ContainerRequests,
  filters: RequestFilters,
  last: string | undefined,
): AsyncGenerator<ShownRequest | Gap> {
  return liveRows(access, { path: 'requests/live', row: 'request' }, filters, last);
}

/** Like `liveRequests`, for the rows of any stream of a container. */
export async function* liveRows<Row>(
  { url, token, container, retryMs = RETRY_MS }: ContainerRequests,
  { path, row }: Followed,
  filters: object,
  last: string | undefined,
): AsyncGenerator<Row | Gap> {
  const address = new URL(`${url.replace(/\/+$/, '')}/server-containers/${container}/${path}`);
  for (const [name, value] of Object.entries(filters)) address.searchParams.set(name, String(value));
  let isConnected = false;
  for (let from = last; ; ) {
    const authorization = `Bearer ${await token()}`;
    const headers = { authorization, ...(from === undefined ? {} : { 'last-event-id': from }) };
    // A restart of the API doesn't end the command, nor does what a proxy before the API answers meanwhile.
    const response = await orCliError(url, fetch(address, { headers })).catch(async (error: unknown) => {
      if (!isConnected) throw error;
      return null;
    });
    if (response === null || (isConnected && isTemporary(response.status))) {
      await response?.body?.cancel().catch(() => undefined);
      await wait(retryMs);
      continue;
    }
    if (!response.ok) throw new CliError((await problemFrom(`GET …/${path}`, response)).message);
    // Without an id to continue after, what came during the interruption is lost.
    if (isConnected && from === undefined) yield { missed: null };
    isConnected = true;
    for await (const { id, event, data } of events(response)) {
      from = id ?? from;
      if (event === row) yield JSON.parse(data) as Row;
      if (event === 'gap') yield JSON.parse(data) as Gap;
    }
    await wait(retryMs);
  }
}

/** The API is busy or unavailable, or a proxy before it can't reach it (Cloudflare: 520 to 530). */
const isTemporary = (status: number) => status === 429 || status >= 502;

interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** The server-sent events of an answer until it ends or breaks. */
async function* events({ body }: Response): AsyncGenerator<ServerEvent> {
  if (body === null) return;
  let text = '';
  try {
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const of = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        yield { id: of('id'), event: of('event'), data: of('data') ?? '' };
      }
    }
  } catch {
    // The connection broke; the caller opens another one.
  }
}

export async function orCliError<Answer>(url: string, work: Promise<Answer>): Promise<Answer> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof ApiProblem) throw new CliError(cause.message, { cause });
    throw new CliError(`the management API at ${url} can't be reached`, { cause });
  }
}
