import { z } from 'zod';
import { REAL_LIMITS } from './api/limits.ts';

/** What a person may set of the emulated Cloudflare. */
export const emulatorSettings = z.object({
  CLOUDFLARE_EMULATOR: z
    .enum(['home', 'real'])
    .default('home')
    .describe(
      'The emulated Cloudflare (docs/cloudflare-emulator.md). `home`: the real limits with shorter delays. `real`: also the real delays, such as up to 60 s until the worker sees a write to KV.',
    ),
  CLOUDFLARE_EMULATOR_CALLS: z.coerce
    .number()
    .int()
    .positive()
    .default(REAL_LIMITS.calls.calls)
    .describe('API calls in five minutes; set more for tools that make many calls beside the provisioner.'),
  CLOUDFLARE_EMULATOR_RECORDS: z.coerce
    .number()
    .pipe(z.literal([200, 1000, 3500]))
    .default(200)
    .describe("The zone's records: 200 (a new free zone), 1000 (an older free one) or 3500 (a paid one)."),
});
