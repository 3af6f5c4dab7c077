import { z } from 'zod';

/** Types whose content is one text. Types with structured `data` are rejected: Tagyard writes none. */
const TYPES = ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'NS', 'PTR'] as const;

/** The body of a POST or PUT. Unknown members are ignored, as in the real API. */
export const recordInput = z.object({
  type: z.enum(TYPES),
  name: z.string().min(1).max(255),
  content: z.string().min(1),
  ttl: z.number().default(1),
  proxied: z.boolean().default(false),
  comment: z.string().nullish(),
  tags: z.array(z.string()).default([]),
  priority: z.number().min(0).max(65535).optional(),
});

export const dnsRecord = z.object({
  id: z.string(),
  zone_id: z.string(),
  zone_name: z.string(),
  type: z.enum(TYPES),
  name: z.string(),
  content: z.string(),
  ttl: z.number(),
  proxied: z.boolean(),
  proxiable: z.boolean(),
  comment: z.string().optional(),
  tags: z.array(z.string()),
  priority: z.number().optional(),
  meta: z.object({}),
  settings: z.object({}),
  created_on: z.string(),
  modified_on: z.string(),
});
export type EmulatedRecord = z.infer<typeof dnsRecord>;
