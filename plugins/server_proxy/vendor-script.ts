import { defineRoute, type PluginContext, type SharedBody } from '../contract.ts';
import { VENDOR_SCRIPT_PATH } from './config.ts';
import {
  FRESH_FOR_SECONDS,
  KEEP_FOR_SECONDS,
  MAX_CACHED_NAMES,
  VENDOR_RETRY_AFTER_MS,
  VENDOR_STALE_TIMEOUT_MS,
  VENDOR_TIMEOUT_MS,
} from './limits.ts';
import { FRESH_UNTIL, fetchVendor, pick, SAFE_HEADERS } from './vendor-fetch.ts';

/** Parameters of the vendor's own preview. With one of them the script is private and is not cached. */
const PREVIEW_PARAMETERS = ['gtm_auth', 'gtm_preview', 'gtm_cookies_win', 'gtm_debug'] as const;
const PREVIEW_COOKIE = /(?:^|;\s*)gtm_(?:auth|preview|debug)=/;

/** The parameter `l` names the page's data layer. It must be an identifier, as in every snippet of the vendor. */
const DATA_LAYER = /^[A-Za-z_$][\w$]{0,63}$/;
/** The keys of the cached copies, by web tag. */
const cachedNames = new Map<string, Set<string>>();

/**
 * GET /c/<container token>.js: the vendor's gtm.js for the web tag of the domain with this token. A copy is shared
 * between all sites with that web tag; its key contains the path and query of the URL that it was fetched from.
 */
export const vendorScriptRoute = defineRoute({
  method: 'GET',
  path: VENDOR_SCRIPT_PATH,
  conditional: true,
  async handle({ request, params }, context) {
    const domain = context.site.domains.find(({ token }) => token === params.token);
    if (domain === undefined) throw context.problem('unknown_container');
    const query = new URL(request.url).searchParams;
    const name = query.get('l') || 'dataLayer';
    if (!DATA_LAYER.test(name)) throw context.problem('malformed_request', 'l must be an identifier');
    const url = new URL('/gtm.js', context.vendor);
    url.searchParams.set('id', domain.webTagId);
    if (name !== 'dataLayer') url.searchParams.set('l', name);
    return isPreview(request, query) ? preview(context, url, query) : cached(context, url, domain.webTagId);
  },
});

function isPreview(request: Request, query: URLSearchParams): boolean {
  return (
    PREVIEW_PARAMETERS.some((name) => query.has(name)) ||
    request.headers.has('x-gtm-server-preview') ||
    PREVIEW_COOKIE.test(request.headers.get('cookie') ?? '')
  );
}

async function preview(context: PluginContext, url: URL, query: URLSearchParams): Promise<Response> {
  for (const name of PREVIEW_PARAMETERS) {
    const value = query.get(name);
    if (value !== null) url.searchParams.set(name, value);
  }
  context.log({ cache: 'bypass' });
  const fetched = await fetchVendor(context, url, VENDOR_TIMEOUT_MS);
  const headers = pick(fetched.headers, SAFE_HEADERS);
  headers.set('cache-control', 'no-store');
  return new Response(fetched.body, { headers });
}

async function cached(context: PluginContext, url: URL, webTagId: string): Promise<Response> {
  const key = `/vendor${url.pathname}${url.search}`;
  const copy = await find(context, key);
  if (copy !== undefined && secondsLeft(context, copy) > 0) {
    context.log({ cache: 'hit' });
    return forPage(context, copy);
  }
  try {
    const fetched = await context.acrossSites.shared(url.href, () => refresh(context, url, key, webTagId));
    context.log({ cache: 'miss' });
    return forPage(context, fetched);
  } catch (cause) {
    if (copy === undefined) throw cause;
    context.log({ cache: 'stale' });
    const headers = new Headers(copy.headers);
    headers.set(FRESH_UNTIL, String(context.now() + VENDOR_RETRY_AFTER_MS));
    context.acrossSites.memory.put(key, { headers, body: copy.body });
    return forPage(context, copy);
  }
}

/** A fresh copy from memory or from the data centre's cache (which is then kept in memory), else a stale one. */
async function find(context: PluginContext, key: string): Promise<SharedBody | undefined> {
  const inMemory = context.acrossSites.memory.get(key);
  if (inMemory !== undefined && secondsLeft(context, inMemory) > 0) return inMemory;
  const cached = await context.cache.match(key);
  if (cached === undefined) return inMemory;
  const copy = { headers: cached.headers, body: await cached.arrayBuffer() };
  context.acrossSites.memory.put(key, copy);
  return copy;
}

/** Fetches a new copy and stores it with its expiry and etag. */
async function refresh(context: PluginContext, url: URL, key: string, webTagId: string): Promise<SharedBody> {
  // Another request may have stored a copy since this one searched for it.
  const copy = await find(context, key);
  if (copy !== undefined && secondsLeft(context, copy) > 0) return copy;
  const { headers, body } = await fetchVendor(
    context,
    url,
    copy === undefined ? VENDOR_TIMEOUT_MS : VENDOR_STALE_TIMEOUT_MS,
  );
  headers.set('etag', await context.etagOf(body));
  const names = cachedNames.get(webTagId) ?? new Set();
  cachedNames.set(webTagId, names);
  if (names.size < MAX_CACHED_NAMES) names.add(key);
  if (names.has(key)) {
    const stored = new Response(body, { headers });
    stored.headers.set('cache-control', `public, max-age=${KEEP_FOR_SECONDS}`);
    await context.cache.put(key, stored);
  }
  context.acrossSites.memory.put(key, { headers, body });
  return { headers, body };
}

/**
 * How long the copy is still fresh. If the clock was set back, this can be longer than any copy stays fresh: then it
 * counts as 0.
 */
function secondsLeft({ now }: PluginContext, { headers }: SharedBody): number {
  const left = Math.floor((Number(headers.get(FRESH_UNTIL)) - now()) / 1000);
  return left > FRESH_FOR_SECONDS ? 0 : left;
}

/** The response for a page: fresh for the rest of the copy's time, and at least for 30 seconds. */
function forPage(context: PluginContext, copy: SharedBody): Response {
  // The `age` that the cache adds is left out: `max-age` is the time that is left, not the copy's whole life.
  const headers = pick(copy.headers, [...SAFE_HEADERS, 'etag']);
  const life = Math.max(30, secondsLeft(context, copy));
  headers.set('cache-control', `public, max-age=${life}, stale-if-error=86400`);
  return new Response(copy.body, { headers });
}
