import { z } from 'zod';
import { pacedFetch } from './cloudflare-transport.ts';
import { createPace } from './pace.ts';

export interface R2Options {
  /** Base URL with its version, `https://api.cloudflare.com/client/v4` in production. */
  readonly url: string;
  readonly token: string;
  /** Absent: the only account that the token can read. */
  readonly accountId?: string | undefined;
  readonly bucket: string;
  /** Calls per second on average, and in a burst; see `CloudflareOptions`. */
  readonly rate?: number;
  readonly burst?: number;
  /** The most milliseconds that one call may take. */
  readonly timeoutMs?: number;
}

const PAGE = 1000;
const TIMEOUT = 30_000;
const accounts = z.object({ result: z.array(z.object({ id: z.string() })).length(1) });
const objectsPage = z.object({
  result: z.array(z.object({ key: z.string(), size: z.number().default(0) })),
  // Absent if there is only one page.
  result_info: z.object({ is_truncated: z.boolean().optional(), cursor: z.string().optional() }).optional(),
});

/** The objects of one R2 bucket. Throws an `Error` with the status of an answer without success. */
export function r2Client({
  url,
  token,
  accountId,
  bucket,
  rate = 3.5,
  burst = 100,
  timeoutMs = TIMEOUT,
}: R2Options) {
  const send = pacedFetch(createPace({ perSecond: rate, burst }), { timeoutMs });
  const api = url.replace(/\/$/, '');
  let account = accountId;

  async function base(): Promise<string> {
    account ??= accounts.parse(await (await call(`${api}/accounts`)).json()).result[0]?.id;
    return `${api}/accounts/${account}/r2/buckets/${encodeURIComponent(bucket)}/objects`;
  }

  const addressOf = async (key: string) => `${await base()}/${encodeURIComponent(key)}`;

  async function call(address: string, init: RequestInit = {}, missing = false): Promise<Response> {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(init.body ? { 'content-type': 'application/octet-stream' } : {}),
    };
    const response = await send(new Request(address, { ...init, headers }));
    if (response.ok || (missing && response.status === 404)) return response;
    const action = init.method === undefined ? 'read' : 'changed';
    throw new Error(`the bucket ${bucket} can’t be ${action}: status ${response.status}`);
  }

  /** Objects whose keys begin with `prefix`, sorted: all, or those after the key `after`. `size` in octets. */
  async function* list(prefix: string, after?: string): AsyncGenerator<{ key: string; size: number }> {
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({
        prefix,
        per_page: String(PAGE),
        ...(after === undefined ? {} : { start_after: after }),
        ...(cursor && { cursor }),
      });
      const { result, result_info: info } = objectsPage.parse(
        await (await call(`${await base()}?${query}`)).json(),
      );
      yield* result;
      cursor = info?.is_truncated ? info.cursor : undefined;
    } while (cursor);
  }

  return {
    list,
    /** All keys that begin with `prefix`, sorted. */
    async *keys(prefix: string): AsyncGenerator<string> {
      for await (const { key } of list(prefix)) yield key;
    },
    async text(key: string): Promise<string> {
      return (await call(await addressOf(key))).text();
    },
    /** `null`: there is no such object. */
    async read(key: string): Promise<Buffer | null> {
      const response = await call(await addressOf(key), {}, true);
      const body = Buffer.from(await response.arrayBuffer());
      return response.ok ? body : null;
    },
    /** Creates the object, or replaces it as a whole. */
    async write(key: string, body: Buffer): Promise<void> {
      await call(await addressOf(key), { method: 'PUT', body: new Uint8Array(body) });
    },
    /** A missing object is no error. */
    async remove(key: string): Promise<void> {
      await call(await addressOf(key), { method: 'DELETE' }, true);
    },
  };
}
