import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** `mark`: tell the tag server. `refuse`: also answer a bot's bootstrap and hits with 204, and pass nothing on. */
  action: z._default(z.literal(['mark', 'refuse']), 'mark'),
  /** The score above which a visitor counts as a bot. */
  threshold: z._default(z.literal([25, 50, 75, 90]), 75),
  /** Paths of calls from servers, which are neither marked nor refused. */
  except: z._default(
    z.array(z.string().check(z.maxLength(200), z.regex(/^\/[A-Za-z0-9._~/-]+$/))).check(z.maxLength(20)),
    [],
  ),
});
