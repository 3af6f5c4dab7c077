import { z } from 'zod';

/** Whether the answer includes the requests of Tagyard's own probes. */
export const probesQuery = z
  .stringbool({ truthy: ['1', 'true'], falsy: ['0', 'false'] })
  .default(false)
  .meta({ description: '`1`: with the installation’s own probes' });
