import * as z from 'zod/mini';
import { definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { bootRoute } from './boot.ts';
import { LOADER_PATH } from './config.ts';
import { renderLoader } from './script.ts';

interface Rendered {
  readonly body: Uint8Array;
  readonly headers: Headers;
}

/**
 * Scripts by edge URL and token: a few per site, but a visitor can request any port. Keyed by the site's list of cookies,
 * so that they are dropped when the site's documents change. The context's `memory` would need a key with the whole script:
 * hashing it costs every request about 20 µs.
 */
const rendered = new WeakMap<readonly string[], Map<string, Rendered>>();
const MAX_RENDERED = 100;

async function loaderFor(context: PluginContext, token: string): Promise<Rendered> {
  const { wantedCookies: cookies, pageScripts } = context;
  const { origin: edge } = context.url;
  const own = rendered.get(cookies) ?? new Map<string, Rendered>();
  const key = `${edge} ${token}`;
  const known = own.get(key);
  if (known !== undefined) return known;
  const body = new TextEncoder().encode(
    renderLoader({ edge, loader: token, cookies, life: context.identityMs / 1000 }, pageScripts),
  );
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

/** Serves the first-party loader and the bootstrap that it requests. */
export default definePlugin({
  name: 'custom_loader',
  kind: 'mandatory',
  alwaysOn: true,
  // The manifest's schema has checked the options (config.ts).
  config: z.looseObject({ identityDays: z.optional(z.number()) }),
  identityDays: ({ identityDays }) => identityDays,
  routes: [
    defineRoute({
      method: 'GET',
      path: LOADER_PATH,
      conditional: true,
      async handle({ params: { token = '' } }, context) {
        if (!(await context.ownsLoader(token))) throw context.problem('unknown_loader');
        const { body, headers } = await loaderFor(context, token);
        return new Response(body, { headers });
      },
    }),
    bootRoute,
  ],
});
