import { z } from 'zod';
import { optionalText } from '../../../base/env-values.ts';

/** The containers' part of the environment. */
export const containersSettings = z.object({
  CONTAINERS_DRIVER: z
    .enum(['docker', 'process'])
    .default('docker')
    .describe('The container runtime: `docker`, or `process` (the stand-in tag server as child processes).'),
  CONTAINER_CA_FILE: optionalText.describe(
    "A file with further CAs (PEM) that the containers trust. If the provisioner can't read it, it doesn't start, because it would replace the containers by ones that don't trust those CAs.",
  ),
  SWAP_STEADY_SECONDS: z.coerce
    .number()
    .min(0)
    .default(5)
    .describe('In a swap: how many seconds the new container must be healthy first.'),
  SWAP_DRAIN_SECONDS: z.coerce
    .number()
    .min(0)
    .default(30)
    .describe('In a swap: how many seconds the old container drains at most.'),
  PREVIEW_IDLE_SECONDS: z.coerce
    .number()
    .positive()
    .default(900)
    .describe(
      'A preview server with `onDemand: true` is stopped after this many seconds without a connection.',
    ),
  RECYCLE_DAYS: z.coerce
    .number()
    .min(0)
    .max(11)
    .default(10)
    .describe(
      "Containers are replaced at this age in days, spread over time, because Google's image reports itself unhealthy after 12. 0: never.",
    ),
  IMAGE_KEEP_DAYS: z.coerce
    .number()
    .min(0)
    .default(30)
    .describe('An image is removed from Docker after no manifest has named it for this many days. 0: never.'),
  LOOPBACK_SUBNET: z
    .string()
    .regex(/^127\.\d{1,3}$/)
    .default('127.77')
    .describe("The first two octets of the containers' loopback addresses."),
});
