import * as z from 'zod/mini';

/** A cookie name (RFC 6265 token), or a prefix of one followed by a single closing `*`. */
const cookiePattern = z
  .string()
  .check(
    z.maxLength(128),
    z.regex(/^[!#$%&'+\-.^_`|~0-9A-Za-z]+\*?$/, 'must be a cookie name, or a prefix ending in *'),
  );

/** What Google's and Meta's own tags write from script, and so what browsers shorten. */
export const DEFAULT_COOKIES = ['_ga', '_ga_*', '_fbp', '_fbc', '_gcl_*'];

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** Names that may be stored and restored; everything else is left alone. */
  cookies: z._default(z.array(cookiePattern).check(z.maxLength(50)), DEFAULT_COOKIES),
});
