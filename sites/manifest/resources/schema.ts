import { z } from 'zod';
import { memoryBytes } from './memory.ts';
import { MOST_REPLICAS } from './replicas.ts';

const memory = z.string().regex(/^[1-9][0-9]{0,5}[mg]$/, 'must be like 512m or 1g');
const cpus = z.number().positive().max(1, 'must be at most 1: the server is single-threaded');

const count = z.int().min(1).max(MOST_REPLICAS);
const range = z
  .strictObject({ min: count, max: count })
  .refine(({ min, max }) => min <= max, 'min must be at most max');
const replicas = z.union([count, range], {
  error: `must be a number from 1 to ${MOST_REPLICAS}, or { min, max } of such numbers`,
});

/** What a pod of a cluster is sure to have; what isn't named has a default (`podResources`). */
const requests = z.strictObject({ memory, cpus }).partial();

const processing = z
  .strictObject({
    memory: memory.default('512m'),
    cpus: cpus.default(1),
    requests: requests.optional(),
    replicas: replicas.default(1),
  })
  .superRefine((limits, context) => {
    const { requests: requested = {} } = limits;
    const refuse = (key: 'memory' | 'cpus') =>
      context.addIssue({
        code: 'custom',
        path: ['requests', key],
        message: `must be at most the limit, ${limits[key]}`,
      });
    if (memoryBytes(requested.memory ?? '0m') > memoryBytes(limits.memory)) refuse('memory');
    if ((requested.cpus ?? 0) > limits.cpus) refuse('cpus');
  })
  .prefault({});

const preview = z
  .strictObject({
    memory: memory.default('256m'),
    cpus: z.number().positive().max(1).default(0.5),
    onDemand: z.boolean().default(false),
  })
  .prefault({});

/** The resources of a site's containers. */
export const containerResources = z.strictObject({ processing, preview });

const givenRequests = requests.meta({
  description:
    'what a cluster guarantees to a pod, at most the limits; it replaces the earlier requests, and `{}` restores the defaults',
});
const givenReplicas = replicas.meta({
  description:
    'a number, or `{ min, max }`: a cluster scales between the two, and a host with Docker runs `min`. If it is a number, a cluster runs at least 2',
});

/** The same resources as an API request names them: what isn't named is unchanged. */
export const givenResources = z
  .strictObject({
    processing: z.strictObject({ memory, cpus, requests: givenRequests, replicas: givenReplicas }).partial(),
    preview: z.strictObject({ memory, cpus: z.number().positive().max(1), onDemand: z.boolean() }).partial(),
  })
  .partial();
