import * as z from 'zod/mini';

/**
 * The options that a manifest may set. A function, so that the worker's bundle omits it: the worker doesn't check them.
 */
export function customLoaderConfig() {
  return z.strictObject({
    enabled: z._default(z.boolean(), true),
    /**
     * The last part of the paths at which a shop's or CMS's own plugin requests the loader, under a domain's prefix. It
     * has no default here, so that documents without it stay as they are.
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
     * Days from the start of a visitor's id until it ends, with all that is kept under it; nothing extends them. It has
     * no default here, so that documents without it stay as they are: they get 395 days, about 13 months.
     */
    identityDays: z.optional(z.int().check(z.minimum(1), z.maximum(400))),
  });
}

export const SNIPPET_PATH = 'gtm.js';

export const LOADER_PATH = '/l/:token.js';
export const BOOT_PATH = '/boot';
