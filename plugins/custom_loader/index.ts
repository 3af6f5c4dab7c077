import * as z from 'zod/mini';
import { definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { bootRoute } from './boot.ts';
import { LOADER_PATH, SNIPPET_PATH } from './config.ts';
import { renderLoader } from './script.ts';
import { isScriptAddress, loaderOf, readSnippet, type Snippet } from './snippet-address.ts';

interface Rendered {
  readonly octets: Uint8Array;
  readonly headers: Headers;
}

/**
 * Rendered scripts by edge URL, token, query, the visitor's place and its rules of consent. There are only a few per
 * site and data centre, unless requested URLs name other ports. The outer key is the site's list of cookies, so that
 * scripts are dropped when the site's documents change. The context's `memory` is not used, because its key would need
 * a hash of all that the script is made of, which costs every request about 20 µs.
 */
const rendered = new WeakMap<readonly string[], Map<string, Rendered>>();
const MAX_RENDERED = 100;
/**
 * More than a real address needs. Scripts with a longer key are not remembered: an address of 16 KB would be in both
 * key and script.
 */
const MAX_KEY_LENGTH = 1024;

interface Asked {
  readonly token: string;
  /** `DE` or `US-CA`, by ISO 3166; empty if the country is unknown. */
  readonly place: string;
  readonly snippet: Snippet | undefined;
}

async function loaderFor(context: PluginContext, { token, place, snippet }: Asked): Promise<Rendered> {
  const { base: edge, consentRules: rules, wantedCookies: cookies, keyCookies: keys, pageScripts } = context;
  const own = rendered.get(cookies) ?? new Map<string, Rendered>();
  const key = [edge, token, snippet?.query ?? 'none', place, ...Object.values(rules)].join(' ');
  const known = own.get(key);
  if (known !== undefined) return known;
  const life = context.identityMs / 1000;
  const values = { edge, loader: token, cookies, keys, life, rules, ...snippet };
  const text = renderLoader(values, place, pageScripts);
  const octets = new TextEncoder().encode(text);
  const hash = await context.etagOf(octets);
  const headers = new Headers({
    'content-type': 'application/javascript; charset=utf-8',
    // A script that names the visitor's place is for this visitor only.
    'cache-control': `${place ? 'private' : 'public'}, max-age=300, stale-while-revalidate=86400`,
    // The page requests it without credentials, so that the browser adds no cookies on a host of the same site.
    'access-control-allow-origin': '*',
    // A page under `cross-origin-embedder-policy: require-corp` requires this header.
    'cross-origin-resource-policy': 'cross-origin',
    // The etag ends with the place, so that a verification can read which place the edge knows.
    'content-length': String(octets.byteLength),
    etag: place ? hash.replace(/"$/, `-${place}"`) : hash,
  });
  const script = { octets, headers };
  if (key.length > MAX_KEY_LENGTH) return script;
  if (own.size >= MAX_RENDERED) own.clear();
  rendered.set(cookies, own.set(key, script));
  return script;
}

async function answerLoader(context: PluginContext, token: string, snippet?: Snippet): Promise<Response> {
  if (!(await context.ownsLoader(token))) throw context.problem('unknown_loader');
  const { country, region } = context.visitor;
  const place = [country, country && region].filter(Boolean).join('-');
  const { octets, headers } = await loaderFor(context, { token, place, snippet });
  return new Response(octets, { headers });
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
      if (snippet === null)
        throw context.problem('malformed_request', 'the parameter l must be an identifier');
      return answerLoader(context, loaderOf(context.site) ?? '', snippet);
    },
  },
});
