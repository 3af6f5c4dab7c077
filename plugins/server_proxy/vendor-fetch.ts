import type { PluginContext, SharedBody } from '../contract.ts';
import { FRESH_FOR_SECONDS, VENDOR_MAX_OCTETS } from './limits.ts';

/** The vendor's headers that a page gets. */
export const SAFE_HEADERS = ['content-type', 'last-modified', 'cross-origin-resource-policy'] as const;

/** A header that only stored copies have: when the copy becomes stale, in milliseconds since the epoch. */
export const FRESH_UNTIL = 'x-tagyard-fresh-until';

/** Why there is no new script. The message is logged, so it must contain no data of the visitor. */
export class VendorFailure extends Error {
  /** True if the vendor has no such script, so that another request would change nothing. */
  isRefusal = false;
}

/**
 * The visitor's place for the vendor, whose scripts depend on it. The names and forms are those of its gateway
 * (docs/facts.md, Tag gateway). A region is sent only in `x-forwarded-countryregion`.
 */
export function vendorPlace({ country, region }: PluginContext['visitor']): Record<string, string> {
  if (country === null) return {};
  return region === null
    ? { 'x-forwarded-country': country }
    : { 'x-forwarded-countryregion': `${country}-${region}` };
}

/**
 * Fetches the vendor's script for the visitor's place, with the headers that a page may get. Throws `VendorFailure` if
 * the answer takes longer than `timeoutMs`, is a redirect, too large, or otherwise not a script.
 */
export async function fetchVendor(context: PluginContext, url: URL, timeoutMs: number): Promise<SharedBody> {
  try {
    const response = await context.fetch(url, {
      headers: vendorPlace(context.visitor),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status } = response;
    const type = response.headers.get('content-type') ?? '';
    if (status !== 200 || !/\bjavascript\b/i.test(type)) {
      await response.body?.cancel();
      const failure = new VendorFailure(`the vendor answered ${status} ${type}`.trim());
      failure.isRefusal = status >= 400 && status < 500;
      throw failure;
    }
    const headers = pick(response.headers, SAFE_HEADERS);
    const maxAge = Number(
      /max-age=(\d+)/.exec(response.headers.get('cache-control') ?? '')?.[1] ?? FRESH_FOR_SECONDS,
    );
    headers.set(FRESH_UNTIL, String(context.now() + Math.min(maxAge, FRESH_FOR_SECONDS) * 1000));
    return { headers, body: await bounded(response) };
  } catch (cause) {
    if (cause instanceof VendorFailure) throw cause;
    throw new VendorFailure(
      (cause as Error)?.name === 'TimeoutError' // any value can be thrown: not all have a name
        ? 'the vendor did not answer in time'
        : 'the vendor could not be reached',
      { cause },
    );
  }
}

/** Reads the body into memory. Throws if it is too large. */
async function bounded({ body }: Response): Promise<ArrayBuffer> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let octets = 0;
  for await (const chunk of body ?? []) {
    octets += chunk.byteLength;
    if (octets > VENDOR_MAX_OCTETS) throw new VendorFailure('the vendor’s script is too large');
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
