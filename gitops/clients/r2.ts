import { z } from 'zod';
import { pacedFetch } from './cloudflare-transport.ts';
import { createPace } from './pace.ts';

export interface R2Options {
  /** Base URL with its version, `https://api.cloudflare.com/client/v4` in production. */
  readonly url: string;
  readonly token: string;
  readonly accountId: string;
  readonly bucket: string;
  /** Calls per second on average, and in a burst; see `CloudflareOptions`. */
  readonly rate?: number;
  readonly burst?: number;
  /** Most milliseconds of one call. */
  readonly timeoutMs?: number;
}

const PAGE = 1000;
const TIMEOUT = 30_000;
const objectsPage = z.object({
  result: z.array(z.object({ key: z.string() })),
  // Absent if there is only one page.
  result_info: z.object({ is_truncated: z.boolean().optional(), cursor: z.string().optional() }).optional(),
});

/** Reads the objects of one R2 bucket. Throws an `Error` with the status of an answer without success. */
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
  const base = `${url.replace(/\/$/, '')}/accounts/${accountId}/r2/buckets/${encodeURIComponent(bucket)}/objects`;

  async function get(address: string): Promise<Response> {
    const response = await send(new Request(address, { headers: { authorization: `Bearer ${token}` } }));
    if (!response.ok) throw new Error(`the bucket ${bucket} can’t be read: status ${response.status}`);
    return response;
  }

  return {
    /** All keys that begin with `prefix`, sorted. */
    async *keys(prefix: string): AsyncGenerator<string> {
      let cursor: string | undefined;
      do {
        const query = new URLSearchParams({ prefix, per_page: String(PAGE), ...(cursor && { cursor }) });
        const { result, result_info: info } = objectsPage.parse(await (await get(`${base}?${query}`)).json());
        for (const { key } of result) yield key;
        cursor = info?.is_truncated ? info.cursor : undefined;
      } while (cursor);
    },
    async text(key: string): Promise<string> {
      return (await get(`${base}/${encodeURIComponent(key)}`)).text();
    },
  };
}
