import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { optionalText } from '../../../base/env-values.ts';
import { siblingUrl } from '../../../base/runtime/sibling.ts';

const STAND_IN = fileURLToPath(siblingUrl('../../../sites/local/demo/tag-server/main', import.meta.url));

/** The containers' part of the environment; `.env.example` explains each variable. */
export const containersSettings = z.object({
  CONTAINERS_DRIVER: z.enum(['docker', 'process']).default('docker'),
  CONTAINER_CA_FILE: optionalText,
  SWAP_STEADY_SECONDS: z.coerce.number().min(0).default(5),
  SWAP_DRAIN_SECONDS: z.coerce.number().min(0).default(30),
  PREVIEW_IDLE_SECONDS: z.coerce.number().positive().default(900),
  RECYCLE_DAYS: z.coerce.number().min(0).max(11).default(10),
  IMAGE_KEEP_DAYS: z.coerce.number().min(0).default(30),
  TAG_SERVER_ENTRY: z.string().default(STAND_IN),
  LOOPBACK_SUBNET: z
    .string()
    .regex(/^127\.\d{1,3}$/)
    .default('127.77'),
});
