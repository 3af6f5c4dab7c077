import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /**
   * The end of the addresses by which a shop's or CMS's own plugin gets the loader, under a domain's prefix. Not a default,
   * so that documents without it stay as they are.
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
});

export const SNIPPET_PATH = 'gtm.js';

export const LOADER_PATH = '/l/:token.js';
export const BOOT_PATH = '/boot';
