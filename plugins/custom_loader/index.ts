import * as z from 'zod/mini';
import { definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { bootRoute } from './boot.ts';
import { LOADER_PATH, SNIPPET_PATH } from './config.ts';
import { renderLoader } from './script.ts';
import { isScriptAddress, loaderOf, readSnippet, type Snippet } from './snippet-address.ts';

interface Rendered {
  /** The script before and after the literal of the visitor's place. */
  readonly parts: readonly [string, string];
  readonly etag: string;
}

/**
 * Scripts by edge URL, token, query and rules of consent: a few per site, but a visitor can request any port. Keyed by the
 * site's list of cookies, so that they are dropped when the site's documents change. The context's `memory` would need a key
 * with the whole script: hashing it costs every request about 20 µs.
 */
const rendered = new WeakMap<readonly string[], Map<string, Rendered>>();
const MAX_RENDERED = 100;

async function loaderFor(context: PluginContext, token: string, snippet?: Snippet): Promise<Rendered> {
  const { base: edge, consentRules: rules, wantedCookies: cookies, keyCookies: keys, pageScripts } = context;
  const own = rendered.get(cookies) ?? new Map<string, Rendered>();
  const key = [edge, token, snippet?.query ?? 'none', ...Object.values(rules)].join(' ');
  const known = own.get(key);
  if (known !== undefined) return known;
  const life = context.identityMs / 1000;
  const parts = renderLoader({ edge, loader: token, cookies, keys, life, rules, ...snippet }, pageScripts);
  const script = { parts, etag: await context.etagOf(new TextEncoder().encode(parts.join('""'))) };
  if (own.size >= MAX_RENDERED) own.clear();
  rendered.set(cookies, own.set(key, script));
  return script;
}

/** `DE` or `US-CA`, by ISO 3166; empty where the country is unknown. */
function placeOf({ country, region }: PluginContext['visitor']): string {
  return [country, country && region].filter(Boolean).join('-');
}

async function answerLoader(context: PluginContext, token: string, snippet?: Snippet): Promise<Response> {
  if (!(await context.ownsLoader(token))) throw context.problem('unknown_loader');
  const { parts, etag } = await loaderFor(context, token, snippet);
  const place = placeOf(context.visitor);
  return new Response(parts.join(JSON.stringify(place)), {
    headers: {
      'content-type': 'application/javascript; charset=utf-8',
      // A script that names the visitor's place is for this visitor only.
      'cache-control': `${place ? 'private' : 'public'}, max-age=300, stale-while-revalidate=86400`,
      // The page requests it without credentials, so that the browser adds no cookies on a host of the same site.
      'access-control-allow-origin': '*',
      // A page under `cross-origin-embedder-policy: require-corp` requires this header.
      'cross-origin-resource-policy': 'cross-origin',
      etag: place ? etag.replace(/"$/, `-${place}"`) : etag,
    },
  });
}

/** Serves the first-party loader and the bootstrap that it requests. */
export default definePlugin({
  name: 'custom_loader',
  kind: 'mandatory',
  alwaysOn: true,
  // The manifest's schema has checked the options (config.ts).
  config: z.looseObject({ identityDays: z.optional(z.number()), scriptPath: z.optional(z.string()) }),
  identityDays: ({ identityDays }) => identityDays,
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
