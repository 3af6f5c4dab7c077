import { definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { bootRoute } from './boot.ts';
import { config } from './config.ts';
import { renderLoader } from './script.ts';

interface Rendered {
  readonly body: Uint8Array;
  readonly etag: string;
}

/** Scripts by what went into them; a site has a handful (its hosts and tokens), an isolate serves many sites. */
const rendered = new Map<string, Rendered>();
const MAX_RENDERED = 1000;

async function loaderFor(context: PluginContext, token: string): Promise<Rendered> {
  const values = { edge: context.url.origin, loader: token, cookies: context.wantedCookies };
  const key = JSON.stringify([values, context.pageScripts.length]);
  const known = rendered.get(key);
  if (known !== undefined) return known;
  const body = new TextEncoder().encode(renderLoader(values, context.pageScripts));
  const script = { body, etag: await context.etagOf(body) };
  if (rendered.size >= MAX_RENDERED) rendered.clear();
  rendered.set(key, script);
  return script;
}

/** The first-party loader and the bootstrap that it asks for. */
export default definePlugin({
  name: 'custom_loader',
  kind: 'mandatory',
  config,
  routes: [
    defineRoute({
      method: 'GET',
      path: '/l/:token.js',
      conditional: true,
      async handle({ params: { token = '' } }, context) {
        if (!(await context.ownsLoader(token))) throw context.problem('unknown_loader');
        const { body, etag } = await loaderFor(context, token);
        return new Response(body, {
          headers: {
            'content-type': 'application/javascript; charset=utf-8',
            'cache-control': 'public, max-age=300, stale-while-revalidate=86400',
            // A page under `cross-origin-embedder-policy: require-corp` takes no other.
            'cross-origin-resource-policy': 'cross-origin',
            etag,
          },
        });
      },
    }),
    bootRoute,
  ],
});
