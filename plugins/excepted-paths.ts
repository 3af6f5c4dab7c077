import * as z from 'zod/mini';

/** Paths of calls from servers, which a plugin that judges visitors leaves alone. */
export const exceptedPaths = z._default(
  z.array(z.string().check(z.maxLength(200), z.regex(/^\/[A-Za-z0-9._~/-]+$/))).check(z.maxLength(20)),
  [],
);
