import { z } from 'zod';

/** The headers of a request that would create a second thing if it were repeated. */
export const creationHeaders = z.looseObject({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 printable characters without spaces')
    .optional()
    .meta({ description: 'for a day, the same request with the same key gets the same answer' }),
});
