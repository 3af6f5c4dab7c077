import * as z from 'zod/mini';

export const config = z.strictObject({
  /** `false`: signals are accepted and dropped; nothing leaves the edge. */
  enabled: z._default(z.boolean(), true),
});
