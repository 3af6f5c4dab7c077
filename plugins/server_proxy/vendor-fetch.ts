import type { PluginContext, SharedBody } from '../contract.ts';

/** What passes from the vendor to the page, beside what is stated for it. */
export const SAFE_HEADERS = [
  'content-type',
  'last-modified',
  'access-control-allow-origin',
  'cross-origin-resource-policy',
] as const;

/** Seconds that a copy is fresh, where the vendor doesn't ask for less (it says `private, max-age=900`). */
export const FRESH_FOR = 900;

/** Our own note on a copy, in milliseconds since the epoch; never sent on. */
export const FRESH_UNTIL = 'x-tagyard-fresh-until';

/**
 * The vendor's script with the headers that may pass, within so many milliseconds. Any other answer than a script, a
 * redirect too, is `upstream_failed`.
 */
export async function fetchVendor(context: PluginContext, url: URL, patience: number): Promise<SharedBody> {
  try {
    const response = await context.fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(patience) });
    const type = response.headers.get('content-type') ?? '';
    if (response.status !== 200 || !/\bjavascript\b/i.test(type)) {
      await response.body?.cancel();
      throw new Error(`the vendor answered ${response.status} ${type}`);
    }
    const headers = pick(response.headers, SAFE_HEADERS);
    const asked = Number(/max-age=(\d+)/.exec(response.headers.get('cache-control') ?? '')?.[1] ?? FRESH_FOR);
    headers.set(FRESH_UNTIL, String(context.now() + Math.min(asked, FRESH_FOR) * 1000));
    return { headers, body: await response.arrayBuffer() };
  } catch (cause) {
    throw Object.assign(context.problem('upstream_failed'), { cause });
  }
}

/** These headers and no others. */
export function pick(from: Headers, names: readonly string[]): Headers {
  const headers = new Headers();
  for (const name of names) {
    const value = from.get(name);
    if (value !== null) headers.set(name, value);
  }
  return headers;
}
