import { z } from 'zod';
import { textList } from '../../../base/env-values.ts';
import { parseRange } from './ranges.ts';
import { SUBNET_BITS } from './subnets.ts';

const range = z.string().transform((text, context) => {
  const parsed = parseRange(text);
  if (parsed !== null) return parsed;
  context.addIssue(`${text} must be an IPv4 range like 10.213.0.0/16`);
  return z.NEVER;
});

/** The networks' part of the environment; `.env.example` explains each variable. */
export const networkSettings = z.object({
  CONTAINER_NETWORKS: textList
    .default(['10.213.0.0/16'])
    .pipe(z.array(range).min(1))
    .refine((ranges) => ranges.every(({ bits }) => bits <= SUBNET_BITS), `must each hold a /${SUBNET_BITS}`),
  CONTAINER_FIREWALL: z.enum(['enforce', 'off']).default('enforce'),
  CONTAINER_REACHABLE: textList.default([]).pipe(z.array(range)),
});
