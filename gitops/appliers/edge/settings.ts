import { z } from 'zod';
import { quotaSetting } from '../../../base/env-values.ts';

/** The edge's part of the environment. */
export const edgeSettings = z.object({
  EDGE_SCRIPT_NAME: z.string().default('tagyard-edge').describe('The worker that the routes lead to.'),
  EDGE_ROUTE_MODE: z
    .enum(['auto', 'site', 'wildcard'])
    .default('auto')
    .describe(
      "Each site has a route (`site`), or one route serves all names under EDGE_DOMAIN (`wildcard`). `auto`: an instance that has routes keeps its mode. A new one gets `wildcard` if others have no route and no proxied name under EDGE_DOMAIN; otherwise, or if the token may not read the zone's DNS records, it gets `site`. Sites are served without a gap while the mode changes (docs/deploy-edge.md). Set the same mode on all hosts.",
    ),
  WORKER_ROUTE_QUOTA: quotaSetting
    .default(1_000)
    .describe(
      "The zone's limit of Workers routes, by which `GET /quotas`, `tagyard doctor` and the API judge. Cloudflare raises it on request.",
    ),
});
