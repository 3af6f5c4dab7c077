import * as z from 'zod/mini';

/** `192.0.2.0/24`, `2001:db8::/32`, or an address alone. */
const RANGE =
  /^(?:(?:\d{1,3}\.){3}\d{1,3}(?:\/(?:\d|[12]\d|3[0-2]))?|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*(?:\/(?:\d|[1-9]\d|1[01]\d|12[0-8]))?)$/;

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** The ranges of the visitors whose bootstraps and hits are refused. */
  ranges: z._default(
    z
      .array(z.string().check(z.regex(RANGE, 'is not an address or a range such as 192.0.2.0/24')))
      .check(z.maxLength(500)),
    [],
  ),
});
