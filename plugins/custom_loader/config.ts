import * as z from 'zod/mini';

/** The options that a manifest may set. A function, so that the worker's bundle, which doesn't check them, omits it. */
export function customLoaderConfig() {
  return z.strictObject({
    enabled: z._default(z.boolean(), true),
    /**
     * The end of the addresses by which a shop's or CMS's own plugin gets the loader, under a domain's prefix. Not a
     * default, so that documents without it stay as they are.
     */
    scriptPath: z.optional(
      z
        .string()
        .check(
          z.regex(
            /^(?=.{1,64}$)[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*$/,
            'must be a plain relative path such as gtm.js',
          ),
        ),
    ),
    /**
     * Days after which a visitor's id and all that is kept of it end, counted from the start; nothing extends them. Not a
     * default, so that documents without it stay as they are. Without it: 395, which are never more than 13 months.
     */
    identityDays: z.optional(z.int().check(z.minimum(1), z.maximum(400))),
  });
}

export const SNIPPET_PATH = 'gtm.js';

export const LOADER_PATH = '/l/:token.js';
export const BOOT_PATH = '/boot';
