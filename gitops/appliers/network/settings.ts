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

/** The networks' part of the environment. */
export const networkSettings = z.object({
  CONTAINER_NETWORKS: textList
    .default(['10.213.0.0/16'])
    .pipe(z.array(range).min(1))
    .refine((ranges) => ranges.every(({ bits }) => bits <= SUBNET_BITS), `must each hold a /${SUBNET_BITS}`)
    .describe(
      "The IPv4 ranges from which each site's network gets a subnet (/26). Choose ranges that this host doesn't use.",
    ),
  CONTAINER_FIREWALL: z
    .enum(['enforce', 'off'])
    .default('enforce')
    .describe(
      'Whether iptables rules stop containers from reaching this host, private addresses and metadata addresses. `enforce` needs root or CAP_NET_ADMIN; without these rights sites are not ready. `npm start`: `enforce` if it can be used.',
    ),
  CONTAINER_REACHABLE: textList
    .default([])
    .pipe(z.array(range))
    .describe('Private addresses and ranges that containers may reach, for example `10.0.5.20,10.1.0.0/24`.'),
});
