import * as z from 'zod/mini';

/** The options that a manifest may set. A function, so that the worker, which reads none of them, lacks it. */
export const adblockItpDetectionConfig = () =>
  z.strictObject({
    /** `false`: signals are accepted and dropped, not forwarded to the tag server. */
    enabled: z._default(z.boolean(), true),
  });

export const DETECTION_PATH = '/mark-session-detection';
export const BAIT_PATH = '/bait/gtm.js';
