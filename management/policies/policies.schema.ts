import { z } from 'zod';
import { LARGEST_POLICY } from '../../sites/manifest/policy/policy-script.ts';
import { givenId } from '../../sites/manifest/schema.ts';
import { examples } from '../http/examples.ts';

export const newPolicy = z
  .strictObject({
    script: z.string().min(1).max(LARGEST_POLICY).meta({
      description: 'JavaScript in gtag.js syntax; it is parsed here, and run by the tag servers only',
    }),
  })
  .meta(
    examples({
      'no requests to other hosts': {
        script:
          "gtag('policy', 'send_http', function (container, permission, data) {\n  return data.url.startsWith('https://www.google-analytics.com/');\n});\n",
      },
    }),
  );

export const policyView = z
  .object({
    script: z.string(),
    history: z
      .array(
        z.object({ commit: z.string(), author: z.string(), at: z.string(), reason: z.string().nullable() }),
      )
      .meta({ description: 'the last 20 commits that changed it, the newest first' }),
  })
  .meta({ id: 'PolicyScript' });

export const policyHeaders = z.looseObject({
  'if-match': z.string().optional().meta({
    description:
      'the `etag` of the script as it was read; if the script has changed since, the answer is 412. `*`, or no header: no check',
  }),
});
export const policyParams = z.strictObject({ id: givenId });
