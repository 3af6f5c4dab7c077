import { z } from 'zod';

/** Types whose content is one text, and types with structured `data`, from which the content is made. */
const TYPES = ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'NS', 'PTR'] as const;
const STRUCTURED = ['SRV', 'CAA', 'HTTPS', 'SVCB'] as const;

const port = z.number().int().min(0).max(65_535);
const service = z.object({ priority: port, target: z.string(), value: z.string().default('') });
const DATA = {
  SRV: z.object({ priority: port, weight: port, port, target: z.string() }),
  CAA: z.object({ flags: z.number().int().min(0).max(255), tag: z.string(), value: z.string() }),
  HTTPS: service,
  SVCB: service,
};

/** The content of a structured record, as the API shows it. */
function contentOf(type: (typeof STRUCTURED)[number], raw: unknown): string {
  if (type === 'SRV') {
    const { priority, weight, port: number, target } = DATA.SRV.parse(raw);
    return `${priority} ${weight} ${number} ${target}`;
  }
  if (type === 'CAA') {
    const { flags, tag, value } = DATA.CAA.parse(raw);
    return `${flags} ${tag} "${value}"`;
  }
  const { priority, target, value } = DATA[type].parse(raw);
  return `${priority} ${target} ${value}`.trimEnd();
}

/** Fills in the content of a structured record. */
function withContent(input: unknown): unknown {
  const structured = z.looseObject({ type: z.enum(STRUCTURED), data: z.looseObject({}) }).safeParse(input);
  if (!structured.success) return input;
  const { type, data } = structured.data;
  const parsed = DATA[type].safeParse(data);
  return parsed.success ? { ...structured.data, content: contentOf(type, data) } : input;
}

const fields = z.object({
  type: z.enum([...TYPES, ...STRUCTURED]),
  name: z.string().min(1).max(255),
  content: z.string().min(1),
  ttl: z.number().default(1),
  proxied: z.boolean().default(false),
  comment: z.string().nullish(),
  tags: z.array(z.string()).default([]),
  priority: z.number().min(0).max(65535).optional(),
  data: z.looseObject({}).optional(),
});

/** The body of a POST or PUT. Unknown members are ignored, as in the real API. */
export const recordInput = z.preprocess(withContent, fields);
/** A member of a batch's `puts`: the record, with the id of the one that it replaces. */
export const identifiedRecordInput = z.preprocess(withContent, fields.extend({ id: z.string() }));
/** The body of a PATCH. */
export const recordPatch = fields.partial();

export const dnsRecord = z.object({
  id: z.string(),
  zone_id: z.string(),
  zone_name: z.string(),
  type: z.enum([...TYPES, ...STRUCTURED]),
  name: z.string(),
  content: z.string(),
  ttl: z.number(),
  proxied: z.boolean(),
  proxiable: z.boolean(),
  comment: z.string().optional(),
  tags: z.array(z.string()),
  priority: z.number().optional(),
  data: z.looseObject({}).optional(),
  meta: z.object({}),
  settings: z.object({}),
  created_on: z.string(),
  modified_on: z.string(),
});
export type EmulatedRecord = z.infer<typeof dnsRecord>;
