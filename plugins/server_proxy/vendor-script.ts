import { defineRoute, type PluginContext, type SharedBody } from '../contract.ts';
import type { RegistryDomain } from '../document.ts';

/** Parameters of the vendor's own preview; with any of them the script is one person's and nobody else's. */
const PREVIEW_PARAMETERS = ['gtm_auth', 'gtm_preview', 'gtm_cookies_win', 'gtm_debug'] as const;
const PREVIEW_COOKIE = /(?:^|;\s*)gtm_(?:auth|preview|debug)=/;

/** What passes from the vendor to the page, beside what is stated here. */
const SAFE_HEADERS = [
  'content-type',
  'last-modified',
  'access-control-allow-origin',
  'cross-origin-resource-policy',
] as const;

/** Seconds that a copy is fresh, where the vendor doesn't ask for less (it says `private, max-age=900`). */
const FRESH_FOR = 900;
/** Seconds that a copy outlives its freshness in the cache, for the day when the vendor fails. */
const KEEP_FOR = 7 * 86_400;
const VENDOR_TIMEOUT = 5000;

/** Our own note on a cached copy; never sent on. */
const FETCHED_AT = 'x-tagyard-fetched-at';
const FRESH_SECONDS = 'x-tagyard-fresh-seconds';

/** GET /c/<container token>.js: the vendor's gtm.js of that domain's web tag and nothing else. */
export const vendorScriptRoute = defineRoute({
  method: 'GET',
  path: '/c/:token.js',
  conditional: true,
  async handle({ request, params }, context) {
    const domain = context.site.domains.find(({ token }) => token === params.token);
    if (domain === undefined) throw context.problem('unknown_container');
    const asked = new URL(request.url).searchParams;
    return isPreview(request, asked)
      ? preview(context, vendorUrl(context, domain, asked, ['l', ...PREVIEW_PARAMETERS]))
      : cached(context, vendorUrl(context, domain, asked, ['l']));
  },
});

function isPreview(request: Request, asked: URLSearchParams): boolean {
  return (
    PREVIEW_PARAMETERS.some((name) => asked.has(name)) ||
    request.headers.has('x-gtm-server-preview') ||
    PREVIEW_COOKIE.test(request.headers.get('cookie') ?? '')
  );
}

function vendorUrl(
  context: PluginContext,
  domain: RegistryDomain,
  asked: URLSearchParams,
  passed: readonly string[],
): URL {
  const url = new URL('/gtm.js', context.vendor);
  url.searchParams.set('id', domain.webTagId);
  for (const name of passed) {
    const value = asked.get(name);
    if (value !== null && !(name === 'l' && value === 'dataLayer')) url.searchParams.set(name, value);
  }
  return url;
}

async function preview(context: PluginContext, url: URL): Promise<Response> {
  context.log({ cache: 'bypass' });
  const { headers, body } = await fetchVendor(context, url);
  headers.set('cache-control', 'no-store');
  return new Response(body, { headers });
}

async function cached(context: PluginContext, url: URL): Promise<Response> {
  const key = `/vendor${url.pathname}${url.search}`;
  const copy = await find(context, key);
  if (isFresh(copy, context.now())) {
    context.log({ cache: 'hit' });
    return forPage(copy, context.now());
  }
  try {
    const fetched = await context.shared(url.href, () => refresh(context, url, key));
    context.log({ cache: 'miss' });
    return forPage(fetched, context.now());
  } catch (cause) {
    if (copy === undefined) throw cause;
    context.log({ cache: 'stale' });
    return forPage(copy, context.now());
  }
}

/** A copy out of memory, or out of the data centre's cache and then kept in memory; where none is fresh, a stale one. */
async function find(context: PluginContext, key: string): Promise<SharedBody | undefined> {
  const held = context.memory.get(key);
  if (isFresh(held, context.now())) return held;
  const cached = await context.cache.match(key);
  if (cached === undefined) return held;
  const copy = { headers: cached.headers, body: await cached.arrayBuffer() };
  context.memory.put(key, copy);
  return copy;
}

/** Fetches a new copy and keeps it, with the headers that it is judged by later. */
async function refresh(context: PluginContext, url: URL, key: string): Promise<SharedBody> {
  // Between a request's look and its turn here, another one may have fetched and landed.
  const copy = await find(context, key);
  if (isFresh(copy, context.now())) return copy;
  const { headers, body, freshSeconds } = await fetchVendor(context, url);
  headers.set('etag', await context.etagOf(body));
  headers.set(FETCHED_AT, String(context.now()));
  headers.set(FRESH_SECONDS, String(freshSeconds));
  const kept = new Response(body, { headers });
  kept.headers.set('cache-control', `public, max-age=${freshSeconds + KEEP_FOR}`);
  await context.cache.put(key, kept);
  context.memory.put(key, { headers, body });
  return { headers, body };
}

function isFresh(copy: SharedBody | undefined, now: number): copy is SharedBody {
  return copy !== undefined && secondsLeft(copy.headers, now) > 0;
}

function secondsLeft(headers: Headers, now: number): number {
  const age = (now - Number(headers.get(FETCHED_AT))) / 1000;
  // A clock that went back must not make a copy eternal.
  return age < 0 ? 0 : Math.floor(Number(headers.get(FRESH_SECONDS)) - age);
}

/** As a page gets it: fresh for what is left, and for a little while where the vendor doesn't answer. */
function forPage(copy: SharedBody, now: number): Response {
  // Only what was kept on purpose: the cache adds an `age` of its own, which would count twice.
  const headers = new Headers();
  for (const name of [...SAFE_HEADERS, 'etag']) {
    const value = copy.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  headers.set(
    'cache-control',
    `public, max-age=${Math.max(30, secondsLeft(copy.headers, now))}, stale-if-error=86400`,
  );
  return new Response(copy.body, { headers });
}

/** The vendor's script with the headers that may pass; any other answer than a script is a failure. */
async function fetchVendor(
  context: PluginContext,
  url: URL,
): Promise<SharedBody & { readonly freshSeconds: number }> {
  try {
    const response = await context.fetch(url, {
      redirect: 'manual',
      signal: AbortSignal.timeout(VENDOR_TIMEOUT),
    });
    const type = response.headers.get('content-type') ?? '';
    if (response.status !== 200 || !/\bjavascript\b/i.test(type)) {
      await response.body?.cancel();
      throw new Error(`the vendor answered ${response.status} ${type}`);
    }
    const headers = new Headers();
    for (const name of SAFE_HEADERS) {
      const value = response.headers.get(name);
      if (value !== null) headers.set(name, value);
    }
    const asked = Number(/max-age=(\d+)/.exec(response.headers.get('cache-control') ?? '')?.[1] ?? FRESH_FOR);
    return { headers, body: await response.arrayBuffer(), freshSeconds: Math.min(asked, FRESH_FOR) };
  } catch (cause) {
    throw Object.assign(context.problem('upstream_failed'), { cause });
  }
}
