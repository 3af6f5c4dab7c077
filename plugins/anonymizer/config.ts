import * as z from 'zod/mini';

const parameters = z
  .array(z.string().check(z.maxLength(60), z.regex(/^[A-Za-z0-9_.[\]-]+$/, 'is not the name of a parameter')))
  .check(z.maxLength(50));

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** `cut`: without its last octet, or all but the first 48 bits of IPv6. `none`: no address at all. */
  address: z._default(z.literal(['cut', 'none', 'keep']), 'cut'),
  /** Parameters, or members of JSON, that the tag server doesn't get. */
  drop: z._default(parameters, []),
  /** Those of which it gets an HMAC in place of the value. */
  hash: z._default(parameters, []),
});
