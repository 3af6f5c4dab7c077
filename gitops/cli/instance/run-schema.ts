import { z } from 'zod';

const address = z.object({ url: z.string() });

/** `$TAGYARD_HOME/run.json`: the addresses of a running instance. The file exists only while the instance runs. */
export const runSchema = z.object({
  pid: z.number(),
  management: address,
  provisioner: address.extend({ secret: z.string() }),
  edge: address,
  verification: address,
  /** The API's base URL with its version, and the account. */
  cloudflare: address.extend({ accountId: z.string() }),
  proxy: address,
  sitesRepo: z.string(),
  database: z.string(),
  drivers: z.object({ dns: z.string(), edge: z.string(), proxy: z.string(), containers: z.string() }),
  demo: z.object({ clientId: z.string(), token: z.string(), container: z.string(), pageUrl: z.string() }),
  /** Seconds of each phase of the start. The parts start at the same time. */
  phases: z.record(z.string(), z.number()).optional(),
});
export type Run = z.infer<typeof runSchema>;
