import { z } from 'zod';
import { quotaSetting } from '../../../base/env-values.ts';

/** The edge's part of the environment; `.env.example` explains each variable. */
export const edgeSettings = z.object({
  EDGE_SCRIPT_NAME: z.string().default('tagyard-edge'),
  EDGE_ROUTE_MODE: z.enum(['auto', 'site', 'wildcard']).default('auto'),
  /** Cloudflare raises it on request. */
  WORKER_ROUTE_QUOTA: quotaSetting.default(1_000),
});
