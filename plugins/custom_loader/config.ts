import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
});

export const LOADER_PATH = '/l/:token.js';
export const BOOT_PATH = '/boot';
