import type { PluginContext, SharedBody } from '../contract.ts';
import { FRESH_FOR_SECONDS, VENDOR_MAX_OCTETS } from './limits.ts';

/** The vendor's headers that a page gets. */
export const SAFE_HEADERS = [
  'content-type',
  'last-modified',
  'access-control-allow-origin',
  'cross-origin-resource-policy',
] as const;

/** A header that only stored copies have: when the copy becomes stale, in milliseconds since the epoch. */
export const FRESH_UNTIL = 'x-tagyard-fresh-until';

/**
 * Fetches the vendor's script, with the headers that a page may get. Throws `upstream_failed` if the answer takes
 * longer than `timeoutMs`, is a redirect, too large, or otherwise not a script.
 */
export async function fetchVendor(context: PluginContext, url: URL, timeoutMs: number): Promise<SharedBody> {
  try {
    const response = await context.fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) });
    const type = response.headers.get('content-type') ?? '';
    if (response.status !== 200 || !/\bjavascript\b/i.test(type)) {
      await response.body?.cancel();
      throw new Error(`the vendor answered ${response.status} ${type}`);
    }
    const headers = pick(response.headers, SAFE_HEADERS);
    const maxAge = Number(
      /max-age=(\d+)/.exec(response.headers.get('cache-control') ?? '')?.[1] ?? FRESH_FOR_SECONDS,
    );
    headers.set(FRESH_UNTIL, String(context.now() + Math.min(maxAge, FRESH_FOR_SECONDS) * 1000));
    return { headers, body: await bounded(response) };
  } catch (cause) {
    throw Object.assign(context.problem('upstream_failed'), { cause });
  }
}

/** Reads the body into memory. Throws if it is too large. */
async function bounded({ body }: Response): Promise<ArrayBuffer> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let octets = 0;
  for await (const chunk of body ?? []) {
    octets += chunk.byteLength;
    if (octets > VENDOR_MAX_OCTETS) throw new Error('the vendor’s script is too large');
    chunks.push(chunk);
  }
  return new Blob(chunks).arrayBuffer();
}

/** A copy with only the named headers. */
export function pick(from: Headers, names: readonly string[]): Headers {
  const headers = new Headers();
  for (const name of names) {
    const value = from.get(name);
    if (value !== null) headers.set(name, value);
  }
  return headers;
}
