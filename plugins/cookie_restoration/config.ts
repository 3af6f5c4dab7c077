import * as z from 'zod/mini';

/** A cookie name (RFC 6265 token), or the prefix of one with a single `*` at the end. */
const cookiePattern = z
  .string()
  .check(z.regex(/^[!#$%&'+\-.^_`|~0-9A-Za-z]{1,127}\*?$/, 'must be a cookie name, or a prefix ending in *'));

/** Cookies that Google's and Meta's tags write by script. Browsers shorten the lifetime of such cookies. */
const DEFAULT_COOKIES = ['_ga', '_ga_*', '_fbp', '_fbc', '_gcl_*'];

const MAX_PATTERNS = 50;

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** Names that may be stored and restored. For this plugin, the loader sends only these and the master cookie. */
  cookies: z._default(
    // `z.maxLength` would add half a kilobyte to the worker for this one list.
    z.array(cookiePattern).check(({ value, issues }) => {
      if (value.length > MAX_PATTERNS) {
        issues.push({ code: 'custom', input: value, message: `must have at most ${MAX_PATTERNS} entries` });
      }
    }),
    DEFAULT_COOKIES,
  ),
  /**
   * An id cookie that the site's own server sets, with at least 128 random bits. Cookies are kept under its value in
   * place of `_fpid`. It has no default, so that documents without it stay as they are.
   */
  masterCookie: z.optional(
    z
      .string()
      .check(
        z.regex(/^(?!_fpid$)[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/, 'must be a cookie name other than _fpid'),
      ),
  ),
});
