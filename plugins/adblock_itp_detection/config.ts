import * as z from 'zod/mini';

export const config = z.strictObject({
  /** `false`: signals are accepted, but not forwarded to the tag server. */
  enabled: z._default(z.boolean(), true),
});

export const DETECTION_PATH = '/mark-session-detection';
export const BAIT_PATH = '/bait/gtm.js';
