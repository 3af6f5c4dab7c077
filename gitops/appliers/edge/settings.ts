import { z } from 'zod';

/** The edge's part of the environment; `.env.example` explains each variable. */
export const edgeSettings = z.object({
  EDGE_SCRIPT_NAME: z.string().default('tagyard-edge'),
  EDGE_ROUTE_MODE: z.enum(['site', 'wildcard']).default('site'),
});
