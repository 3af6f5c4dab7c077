import { defineRoute, type PluginContext, type RouteInput, type SharedBody } from '../contract.ts';
import { VENDOR_SCRIPT_PATH } from './config.ts';
import { admitDataLayer, readDataLayer } from './data-layers.ts';
import { SERVED_STALE_FOR_SECONDS, VENDOR_TIMEOUT_MS } from './limits.ts';
import {
  copyKey,
  FAILED_BECAUSE,
  findCopy,
  renew,
  secondsLeft,
  unlessRefused,
  versionOf,
} from './vendor-copies.ts';
import { fetchVendor, pick, SAFE_HEADERS, VendorFailure } from './vendor-fetch.ts';

/** Parameters of the vendor's own preview. With one of them the script is private and is not cached. */
const PREVIEW_PARAMETERS = ['gtm_auth', 'gtm_preview', 'gtm_cookies_win', 'gtm_debug'] as const;
const PREVIEW_COOKIE = /(?:^|;\s*)gtm_(?:auth|preview|debug)=/;

/**
 * GET /c/<container token>.js: the vendor's gtm.js for the web tag of the domain with this token, and for the visitor's
 * place.
 */
export const vendorScriptRoute = defineRoute({
  method: 'GET',
  path: VENDOR_SCRIPT_PATH,
  conditional: true,
  async handle(input, context) {
    const domain = context.site.domains.find(({ token }) => token === input.params.token);
    if (domain === undefined) throw context.problem('unknown_container');
    const query = new URLSearchParams(context.search);
    const dataLayer = readDataLayer(context, query);
    const layer = dataLayer ? `&l=${encodeURIComponent(dataLayer)}` : '';
    const path = `/gtm.js?id=${encodeURIComponent(domain.webTagId)}${layer}`;
    const script = { path, key: copyKey(context, path), dataLayer };
    try {
      return await (isPreview(input, query) ? preview(context, script, query) : cached(context, script));
    } catch (failure) {
      if (!(failure instanceof VendorFailure)) throw failure;
      context.log({ cause: failure.message });
      throw Object.assign(context.problem('upstream_failed'), { cause: failure });
    }
  },
});

/** A script of the vendor: its path and query there, the key of its copies, and the data layer that it is for. */
interface Script {
  readonly path: string;
  readonly key: string;
  readonly dataLayer: string | null;
}

function isPreview(input: RouteInput, query: URLSearchParams): boolean {
  return (
    PREVIEW_PARAMETERS.some((name) => query.has(name)) ||
    input.header('x-gtm-server-preview') !== null ||
    PREVIEW_COOKIE.test(input.header('cookie') ?? '')
  );
}

async function preview(
  context: PluginContext,
  { path, key, dataLayer }: Script,
  query: URLSearchParams,
): Promise<Response> {
  if (dataLayer !== null && (await findCopy(context, key)) === undefined) {
    admitDataLayer(context, dataLayer);
  }
  const previewed = new URL(path, context.vendor);
  for (const name of PREVIEW_PARAMETERS) {
    const value = query.get(name);
    if (value !== null) previewed.searchParams.set(name, value);
  }
  context.log({ cache: 'bypass' });
  const fetched = await fetchVendor(context, previewed, VENDOR_TIMEOUT_MS);
  const headers = scriptHeaders(fetched.headers, SAFE_HEADERS);
  headers.set('cache-control', 'no-store');
  return new Response(fetched.body, { headers });
}

async function cached(context: PluginContext, { path, key, dataLayer }: Script): Promise<Response> {
  const copy = await findCopy(context, key);
  if (copy === undefined) {
    admitDataLayer(context, dataLayer);
    context.log({ cache: 'miss' });
    return forPage(context, await renew(context, path, key));
  }
  const left = secondsLeft(context, copy);
  if (left > 0) {
    const response = forPage(context, unlessRefused(copy));
    const cause = copy.headers.get(FAILED_BECAUSE);
    context.log(cause === null ? { cache: 'hit' } : { cache: 'stale', cause });
    return response;
  }
  const renewing = renew(context, path, key);
  if (-left < SERVED_STALE_FOR_SECONDS) {
    // A failure is remembered with the copy, and logged by the next request for it.
    context.waitUntil(renewing.catch(() => undefined));
    context.log({ cache: 'stale' });
    return forPage(context, copy);
  }
  try {
    const renewed = await renewing;
    context.log({ cache: 'miss' });
    return forPage(context, renewed);
  } catch (failure) {
    if (!(failure instanceof VendorFailure)) throw failure;
    context.log({ cache: 'stale', cause: failure.message });
    return forPage(context, copy);
  }
}

/** The named headers, for any page: pages request the script without credentials, so that no cookies come with it. */
function scriptHeaders(from: Headers, names: readonly string[]): Headers {
  const headers = pick(from, names);
  headers.set('access-control-allow-origin', '*');
  return headers;
}

/** The headers of answers, by copy: the runtime copies `Headers` much faster than it picks them one by one. */
const answers = new WeakMap<SharedBody, Headers>();

/** The response for a page: fresh for the rest of the copy's time, and at least for 30 seconds. */
function forPage(context: PluginContext, copy: SharedBody): Response {
  // The `age` that the cache adds is left out: `max-age` is the time that is left, not the copy's whole life.
  const headers = answers.get(copy) ?? scriptHeaders(copy.headers, [...SAFE_HEADERS, 'etag']);
  answers.set(copy, headers);
  const life = Math.max(30, secondsLeft(context, copy));
  // A cache between edge and browser must not give the script of one place to visitors from another.
  const scope = context.visitor.country === null ? 'public' : 'private';
  headers.set('cache-control', `${scope}, max-age=${life}, stale-if-error=86400`);
  headers.set('content-length', String(copy.body.byteLength));
  context.log({ webContainerVersion: versionOf(copy) });
  return new Response(copy.body, { headers });
}
