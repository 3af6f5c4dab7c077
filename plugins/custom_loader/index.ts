import { definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { bootRoute } from './boot.ts';
import { config, LOADER_PATH, SNIPPET_PATH } from './config.ts';
import { renderLoader } from './script.ts';
import { isScriptAddress, loaderOf, readSnippet, type Snippet } from './snippet-address.ts';

interface Rendered {
  readonly body: Uint8Array;
  readonly headers: Headers;
}

/**
 * Scripts by edge URL, token and query: a few per site, but a visitor can request any port. Keyed by the site's list of cookies,
 * so that they are dropped when the site's documents change. The context's `memory` would need a key with the whole script:
 * hashing it costs every request about 20 µs.
 */
const rendered = new WeakMap<readonly string[], Map<string, Rendered>>();
const MAX_RENDERED = 100;

async function loaderFor(context: PluginContext, token: string, snippet?: Snippet): Promise<Rendered> {
  const { base: edge, wantedCookies: cookies, pageScripts } = context;
  const own = rendered.get(cookies) ?? new Map<string, Rendered>();
  const key = `${edge} ${token} ${snippet?.query}`;
  const known = own.get(key);
  if (known !== undefined) return known;
  const values = { edge, loader: token, cookies, ...snippet };
  const body = new TextEncoder().encode(renderLoader(values, pageScripts));
  const headers = new Headers({
    'content-type': 'application/javascript; charset=utf-8',
    'cache-control': 'public, max-age=300, stale-while-revalidate=86400',
    // A page under `cross-origin-embedder-policy: require-corp` requires this header.
    'cross-origin-resource-policy': 'cross-origin',
    etag: await context.etagOf(body),
  });
  if (own.size >= MAX_RENDERED) own.clear();
  rendered.set(cookies, own.set(key, { body, headers }));
  return { body, headers };
}

async function answerLoader(context: PluginContext, token: string, snippet?: Snippet): Promise<Response> {
  if (!(await context.ownsLoader(token))) throw context.problem('unknown_loader');
  const { body, headers } = await loaderFor(context, token, snippet);
  return new Response(body, { headers });
}

/** Serves the first-party loader and the bootstrap that it requests. */
export default definePlugin({
  name: 'custom_loader',
  kind: 'mandatory',
  config,
  routes: [
    defineRoute({
      method: 'GET',
      path: LOADER_PATH,
      conditional: true,
      handle: ({ params: { token = '' } }, context) => answerLoader(context, token),
    }),
    bootRoute,
  ],
  prefixed: {
    owns: (address, site, { scriptPath = SNIPPET_PATH }) => isScriptAddress(address, site, scriptPath),
    async handle({ request }, context) {
      const snippet = readSnippet(new URL(request.url));
      if (snippet === null) throw context.problem('malformed_request', 'l must be the name of a data layer');
      return answerLoader(context, loaderOf(context.site) ?? '', snippet);
    },
  },
});
