import * as z from 'zod/mini';
import { exceptedPaths } from '../excepted-paths.ts';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** What happens to a hit without consent: it is not passed on, or only without what identifies the visitor. */
  action: z._default(z.literal(['drop', 'strip']), 'drop'),
  /** The purpose that needs consent. `any`: one of both is enough. */
  purpose: z._default(z.literal(['analytics', 'ads', 'any']), 'analytics'),
  /** Paths of calls from servers, which state no consent. */
  except: exceptedPaths,
});
