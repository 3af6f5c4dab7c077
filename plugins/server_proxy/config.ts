import * as z from 'zod/mini';

/**
 * The paths that the tag server answers: those of its built-in clients, its health, and the preview server behind it
 * (docs/facts.md: the image's routing). Any other path needs a line in the manifest.
 */
export const TAG_SERVER_PATHS = [
  '/g/collect',
  '/j/collect',
  '/r/collect',
  '/mp/collect',
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

/** Reserved for the site owner: Private Click Measurement and ACME use it. */
const WELL_KNOWN = '/.well-known/*';

const NO_DOT_SEGMENTS = /^(?!.*\/\.\.?(?:\/|$))/;

/**
 * Matches every path except those with the same first segment as one of `routePaths`. It is a pattern and not a
 * function, so that the manifest's JSON Schema contains the rule and editors apply it.
 */
function notReserved(routePaths: readonly string[]): RegExp {
  const segments = [...routePaths, WELL_KNOWN].map((path) => path.split('/')[1] ?? '');
  const escaped = [...new Set(segments)].map((segment) => segment.replaceAll('.', '\\.'));
  return new RegExp(`^(?!\\/(?:${escaped.join('|')})(?:\\/|$))`);
}

/**
 * The options that a manifest may set. `routePaths` are the paths of all plugins' routes: a manifest can't add any of
 * them, or any path with the same first segment.
 */
export function serverProxyConfig(routePaths: readonly string[]) {
  /** An exact path on the edge hostname that is forwarded to the tag server in addition to the built-in ones. */
  const proxyPath = z
    .string()
    .check(
      z.maxLength(200),
      z.regex(/^\/[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*$/, 'must be a plain absolute path such as /data'),
      z.regex(NO_DOT_SEGMENTS, 'must not contain dot segments'),
      z.regex(notReserved(routePaths), 'is reserved by Tagyard'),
    );
  return z.strictObject({
    enabled: z._default(z.boolean(), true),
    /** Exact paths forwarded to the site's tag server in addition to the built-in ones. */
    paths: z._default(z.array(proxyPath).check(z.maxLength(50)), []),
  });
}
