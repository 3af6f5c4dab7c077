import type * as z from 'zod/mini';
import { definePlugin, type PluginContext, type RouteInput } from '../contract.ts';
import { config } from './config.ts';

type Settings = z.infer<typeof config>;

/** The request headers that Google gets, beside those that the plugin sets. */
const PASSED =
  /^(?:accept|accept-language|content-type|if-modified-since|if-none-match|origin|range|referer|sec-.*|user-agent)$/;
/** Google's own cookies. It drops all others. */
const GOOGLE_COOKIE =
  /^(?:_ga(?:_.*)?|_gcl_.*|_gac_.*|_dcid|FPID|FPLC|FPAU|FPGCL.*|FPGSID|gtm_auth|gtm_debug|gtm_preview)$/;
const TIMEOUT_MS = 20_000;

/** Passes a site's measurement path on to Google's tag gateway (docs/facts.md, Tag gateway). */
export default definePlugin({
  name: 'google_tag_gateway',
  kind: 'optional',
  flag: 'google_tag_gateway',
  config,
  routes: [],
  dynamic: {
    owns: (path, _site, { path: own }) => path === own || path.startsWith(`${own}/`),
    handle,
  },
});

async function handle({ request }: RouteInput, context: PluginContext<Settings>): Promise<Response> {
  const { settings, site, base, url } = context;
  const tagId = settings.tagId ?? (context.domainOf(url.hostname) ?? site.domains[0])?.webTagId;
  if (tagId === undefined) throw context.problem('unknown_container');
  // With the prefix, because Google writes into its scripts the path that it was asked for; raw, as it came.
  const prefix = base.slice(url.origin.length);
  const asked = request.url.slice(new URL(request.url).origin.length);
  const target = prefix + asked.replace(new RegExp(`^${settings.path}(?=\\?|$)`), `${settings.path}/`);
  try {
    const response = await context.fetch(`https://${tagId.toLowerCase()}.fps.goog${target}`, {
      method: request.method,
      headers: headersFor(request, context),
      body: request.method === 'GET' || request.method === 'HEAD' ? null : request.body,
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    context.count(response.status < 400 ? 'passed' : 'refused');
    return new Response(response.body, response);
  } catch (cause) {
    context.log({ cause: `the tag gateway did not answer: ${cause instanceof Error ? cause.name : ''}` });
    throw context.problem('upstream_failed');
  }
}

/** The place is set by us and never by the visitor; the address only where the site's owner wants it. */
function headersFor(request: Request, { settings, visitor }: PluginContext<Settings>): Headers {
  const headers = new Headers([...request.headers].filter(([name]) => PASSED.test(name)));
  const cookies = (request.headers.get('cookie') ?? '')
    .split(/;\s*/)
    .filter((pair) => GOOGLE_COOKIE.test(pair.split('=')[0] ?? ''));
  if (cookies.length > 0) headers.set('cookie', cookies.join('; '));
  // Bodies that are compressed again, or wrongly labelled, break the scripts.
  headers.set('accept-encoding', 'identity');
  const { address, country, region } = visitor;
  if (country !== null && region !== null) headers.set('x-forwarded-countryregion', `${country}-${region}`);
  else if (country !== null) headers.set('x-forwarded-country', country);
  if (settings.visitorAddress && address !== null) headers.set('x-forwarded-for', address);
  return headers;
}
