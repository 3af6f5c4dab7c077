import * as z from 'zod/mini';

/**
 * Paths that the edge itself or the closed path table of this plugin answers; a manifest can't add one of them.
 * `/.well-known/` stays with the site owner: Private Click Measurement and ACME live there. Patterns rather than code,
 * so that the manifest's JSON Schema, and with it an editor, knows them too.
 */
const NOT_RESERVED =
  /^(?!\/(?:l|c|boot|mark-session-detection|_|gtm|g|j|mp|\.well-known)(?:\/|$)|\/(?:gtm\.js|gtag\/js|gtag\/destination|ns\.html|healthy|healthz|bait\/gtm\.js)?$)/;
const NO_DOT_SEGMENTS = /^(?!.*\/\.\.?(?:\/|$))/;

/** An exact path on the edge hostname that is handed to the tag server beside the built-in table. */
export const proxyPath = z
  .string()
  .check(
    z.maxLength(200),
    z.regex(/^\/[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*$/, 'must be a plain absolute path such as /data'),
    z.regex(NO_DOT_SEGMENTS, 'must not contain dot segments'),
    z.regex(NOT_RESERVED, 'is reserved by Tagyard'),
  );

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** Exact paths proxied to the site's tag server besides the built-in table. */
  paths: z._default(z.array(proxyPath).check(z.maxLength(50)), []),
});
