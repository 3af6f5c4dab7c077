import { defineRoute, type PluginContext, type SharedBody } from '../contract.ts';
import { FRESH_FOR, FRESH_UNTIL, fetchVendor, pick, SAFE_HEADERS } from './vendor-fetch.ts';

/** Parameters of the vendor's own preview; with any of them the script is one person's and nobody else's. */
const PREVIEW_PARAMETERS = ['gtm_auth', 'gtm_preview', 'gtm_cookies_win', 'gtm_debug'] as const;
const PREVIEW_COOKIE = /(?:^|;\s*)gtm_(?:auth|preview|debug)=/;

/** Seconds that a copy outlives its freshness in the cache, for the day when the vendor fails. */
const KEEP_FOR = 7 * 86_400;
/** How long a page waits for the vendor, and how long where an old copy could serve; in milliseconds. */
const PATIENCE = 5000;
const STALE_PATIENCE = 1000;
/** How long a vendor that has just failed is left alone where an old copy serves, in milliseconds. */
const RETRY_AFTER = 10_000;

/** What `l` may be: an identifier, as every snippet of the vendor's has it. */
const DATA_LAYER = /^[A-Za-z_$][\w$]{0,63}$/;
/**
 * Names are for strangers to choose and each is a copy of its own: so many of a web tag an isolate puts into the data
 * centre's cache. Others are kept in its memory only, which has a bound.
 */
const MAX_NAMES = 10;
const cachedNames = new Map<string, Set<string>>();

/**
 * GET /c/<container token>.js: the vendor's gtm.js of that domain's web tag and nothing else. A copy is the web tag's,
 * whichever site asks for it; its key is the address that it was fetched from.
 */
export const vendorScriptRoute = defineRoute({
  method: 'GET',
  path: '/c/:token.js',
  conditional: true,
  async handle({ request, params }, context) {
    const domain = context.site.domains.find(({ token }) => token === params.token);
    if (domain === undefined) throw context.problem('unknown_container');
    const asked = new URL(request.url).searchParams;
    const name = asked.get('l') || 'dataLayer';
    if (!DATA_LAYER.test(name)) throw context.problem('malformed_request', 'l must be an identifier');
    const url = new URL('/gtm.js', context.vendor);
    url.searchParams.set('id', domain.webTagId);
    if (name !== 'dataLayer') url.searchParams.set('l', name);
    return isPreview(request, asked) ? preview(context, url, asked) : cached(context, url, domain.webTagId);
  },
});

function isPreview(request: Request, asked: URLSearchParams): boolean {
  return (
    PREVIEW_PARAMETERS.some((name) => asked.has(name)) ||
    request.headers.has('x-gtm-server-preview') ||
    PREVIEW_COOKIE.test(request.headers.get('cookie') ?? '')
  );
}

async function preview(context: PluginContext, url: URL, asked: URLSearchParams): Promise<Response> {
  for (const name of PREVIEW_PARAMETERS) {
    const value = asked.get(name);
    if (value !== null) url.searchParams.set(name, value);
  }
  context.log({ cache: 'bypass' });
  const fetched = await fetchVendor(context, url, PATIENCE);
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
    headers.set(FRESH_UNTIL, String(context.now() + RETRY_AFTER));
    context.acrossSites.memory.put(key, { headers, body: copy.body });
    return forPage(context, copy);
  }
}

/** A copy out of memory, or out of the data centre's cache and then kept in memory; where none is fresh, a stale one. */
async function find(context: PluginContext, key: string): Promise<SharedBody | undefined> {
  const held = context.acrossSites.memory.get(key);
  if (held !== undefined && secondsLeft(context, held) > 0) return held;
  const cached = await context.cache.match(key);
  if (cached === undefined) return held;
  const copy = { headers: cached.headers, body: await cached.arrayBuffer() };
  context.acrossSites.memory.put(key, copy);
  return copy;
}

/** Fetches a new copy and keeps it, with the headers that it is judged by later. */
async function refresh(context: PluginContext, url: URL, key: string, webTagId: string): Promise<SharedBody> {
  // Between a request's look and its turn here, another one may have fetched and landed.
  const copy = await find(context, key);
  if (copy !== undefined && secondsLeft(context, copy) > 0) return copy;
  const { headers, body } = await fetchVendor(context, url, copy === undefined ? PATIENCE : STALE_PATIENCE);
  headers.set('etag', await context.etagOf(body));
  const names = cachedNames.get(webTagId) ?? new Set();
  cachedNames.set(webTagId, names);
  if (names.size < MAX_NAMES) names.add(key);
  if (names.has(key)) {
    const kept = new Response(body, { headers });
    kept.headers.set('cache-control', `public, max-age=${KEEP_FOR}`);
    await context.cache.put(key, kept);
  }
  context.acrossSites.memory.put(key, { headers, body });
  return { headers, body };
}

/** Until the copy must be fetched anew; never more than a copy can have, or a clock that went back made it eternal. */
function secondsLeft({ now }: PluginContext, { headers }: SharedBody): number {
  const left = Math.floor((Number(headers.get(FRESH_UNTIL)) - now()) / 1000);
  return left > FRESH_FOR ? 0 : left;
}

/** As a page gets it: fresh for what is left, and for a little while where the vendor doesn't answer. */
function forPage(context: PluginContext, copy: SharedBody): Response {
  // Only what was kept on purpose: the cache adds an `age` of its own, which would count twice.
  const headers = pick(copy.headers, [...SAFE_HEADERS, 'etag']);
  const life = Math.max(30, secondsLeft(context, copy));
  headers.set('cache-control', `public, max-age=${life}, stale-if-error=86400`);
  return new Response(copy.body, { headers });
}
