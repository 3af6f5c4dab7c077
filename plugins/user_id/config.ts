import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** The header in which the tag server gets the id. */
  header: z._default(z.literal(['x-tagyard-user-id', 'x-stape-user-id']), 'x-tagyard-user-id'),
});
