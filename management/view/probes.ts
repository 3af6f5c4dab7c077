import { z } from 'zod';

/** Whether requests of our own probes are asked for, too; they are left out otherwise. */
export const probesQuery = z
  .stringbool({ truthy: ['1', 'true'], falsy: ['0', 'false'] })
  .default(false)
  .meta({ description: '`1`: with the installation’s own probes' });
