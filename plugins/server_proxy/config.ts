import * as z from 'zod/mini';

/** The paths to which tags and servers send hits. A site's options can name further ones. */
export const HIT_PATHS: readonly string[] = [
  '/g/collect',
  '/g/s/collect',
  '/j/collect',
  '/r/collect',
  '/mp/collect',
];

/**
 * The paths that the tag server answers: those of its built-in clients, its health, and the preview server behind it
 * (docs/facts.md: the image's routing). Any other path needs a line in the manifest.
 */
export const TAG_SERVER_PATHS = [
  ...HIT_PATHS,
  '/gtm.js',
  '/gtag/js',
  '/gtag/destination',
  '/ns.html',
  '/static/*',
  '/healthy',
  '/healthz',
  '/_/*',
  '/gtm',
  '/gtm/*',
] as const;

export const VENDOR_SCRIPT_PATH = '/c/:token.js';

/** The name of a page's data layer: an identifier, as in every snippet of the vendor. */
export const DATA_LAYER = /^[A-Za-z_$][\w$]{0,63}$/;

/**
 * First segments of the edge's own paths, reserved also for its later routes. No path below them is forwarded to the
 * tag server. `.well-known` is the site owner's: Private Click Measurement and ACME use it.
 */
export const OWN_SEGMENTS: readonly string[] = [
  'l',
  'c',
  'boot',
  'mark-session-detection',
  '.well-known',
  '.tagyard',
];

/** A cookie's name (RFC 6265, 4.1.1), or a prefix of names. */
const COOKIE = /^[A-Za-z0-9!#$%&'+.^_`|~-]{1,127}\*?$/;

/** A path of unreserved characters, without a slash at the end. */
const PLAIN = '/[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*';

/** The entry by which a site's documents forward every path that isn't the edge's own. */
const EVERY_PATH = '/*';

const NO_DOT_SEGMENTS = /^(?!.*\/\.\.?(?:\/|$))/;

/**
 * Matches every path except those that a route answers and those with a reserved first segment. It is a pattern and not a
 * function, so that the manifest's JSON Schema contains the rule and editors apply it.
 */
function notReserved(routePaths: readonly string[]): RegExp {
  // The edge's own first segments, and those that are reserved for later routes of the tag server.
  const reserved = [...OWN_SEGMENTS, '_', 'gtm', 'g', 'j', 'mp'];
  const answered = [...reserved.map((segment) => `/${segment}/*`), ...routePaths].map((path) =>
    path
      .replaceAll('.', '\\.')
      .replaceAll(/:\w+/g, '[^/]+')
      // The router answers `/static` by the route `/static/*`, too.
      .replace(/\/\*$/, '(?:/.*)?'),
  );
  return new RegExp(`^(?!(?:${answered.join('|')})$)`);
}

/**
 * The options that a manifest may set. `routePaths` are the paths of all plugins' routes: a manifest can't add a path that
 * one of them answers.
 */
export function serverProxyConfig(routePaths: readonly string[]) {
  /** A path on the edge hostname, or a prefix, that is forwarded to the tag server in addition to the built-in ones. */
  const proxyPath = z
    .string()
    .check(
      z.maxLength(200),
      z.regex(
        new RegExp(`^${PLAIN}(?:/\\*)?$`),
        'must be a plain absolute path such as /data, or a prefix such as /data/*',
      ),
      z.regex(NO_DOT_SEGMENTS, 'must not contain dot segments'),
      z.regex(notReserved(routePaths), 'is reserved by Tagyard'),
    );
  const tagServingPath = z
    .string()
    .check(
      z.maxLength(200),
      z.regex(new RegExp(`^${PLAIN}$`), 'must be a plain absolute path such as /t1a2b3c4'),
      z.regex(NO_DOT_SEGMENTS, 'must not contain dot segments'),
      z.regex(notReserved(routePaths), 'is reserved by Tagyard'),
    );
  return z.strictObject({
    enabled: z._default(z.boolean(), true),
    /**
     * Paths that are forwarded to the site's tag server in addition to the built-in ones. One that ends with `/*` is a
     * prefix: it means the path before the `/*` and all paths below that.
     */
    paths: z._default(z.array(proxyPath).check(z.maxLength(50)), []),
    /** The tag serving path of the web container client, a prefix that Tag Manager generates. */
    tagServingPath: z.optional(tagServingPath),
    /**
     * Forwards every path that isn't the edge's own. It has no default, so that documents without it stay as they are.
     */
    passthrough: z.optional(z.boolean()),
    /**
     * Cookie names (or prefixes ending in `*`) that the clients and templates in the container read, in addition to
     * those that every tag server gets.
     */
    cookies: z.optional(
      z
        .array(z.string().check(z.regex(COOKIE, 'is not a cookie name or a prefix with * at the end')))
        .check(z.maxLength(50)),
    ),
    /** Names of the pages' data layers, beside `dataLayer`: always admitted. `DATA_LAYER_NAMES` limits all others. */
    dataLayers: z.optional(
      z
        .array(z.string().check(z.regex(DATA_LAYER, 'must be an identifier such as shopLayer')))
        .check(z.maxLength(20)),
    ),
  });
}

/** The paths and prefixes of a site's options, as its documents have them. */
export function forwardedPaths(
  options:
    | {
        readonly paths: readonly string[];
        readonly tagServingPath?: string | undefined;
        readonly passthrough?: boolean | undefined;
      }
    | undefined,
): string[] {
  if (options === undefined) return [];
  const { paths, tagServingPath, passthrough } = options;
  return [
    ...paths,
    ...(tagServingPath === undefined ? [] : [`${tagServingPath}/*`]),
    ...(passthrough === true ? [EVERY_PATH] : []),
  ];
}
