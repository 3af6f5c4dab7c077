import * as z from 'zod/mini';
import { exceptedPaths } from '../excepted-paths.ts';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** `mark`: tell the tag server. `refuse`: also answer a bot's bootstrap and hits with 204, and pass nothing on. */
  action: z._default(z.literal(['mark', 'refuse']), 'mark'),
  /** The score above which a visitor counts as a bot. */
  threshold: z._default(z.literal([25, 50, 75, 90]), 75),
  /** Paths of calls from servers, which are neither marked nor refused. */
  except: exceptedPaths,
});
