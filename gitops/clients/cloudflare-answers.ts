import { z } from 'zod';

/** The members of Cloudflare's answers that Tagyard uses; others are ignored. */

const enveloped = <T extends z.ZodType>(result: T) => z.object({ success: z.literal(true), result });

const counted = <T extends z.ZodType>(item: T) =>
  enveloped(z.array(item)).extend({
    result_info: z.object({ page: z.number(), per_page: z.number(), total_count: z.number() }),
  });

const dnsRecord = z.object({
  id: z.string(),
  type: z.string(),
  name: z.string(),
  content: z.string().default(''),
  ttl: z.number().default(1),
  proxied: z.boolean().default(false),
  comment: z.string().nullish(),
  modified_on: z.string().optional(),
});

/** A route without `script` bypasses the workers. */
const workersRoute = z.object({ id: z.string(), pattern: z.string(), script: z.string().nullish() });
export type WorkersRoute = z.infer<typeof workersRoute>;

/** A hostname that leads to the worker `service`, all its paths. */
const workersDomain = z.object({ hostname: z.string(), service: z.string() });
export type WorkersDomain = z.infer<typeof workersDomain>;

/** Keys that others wrote may have no metadata. */
const kvKey = z.object({
  name: z.string(),
  metadata: z.unknown().optional(),
  expiration: z.number().optional(),
});
export type KvKey = z.infer<typeof kvKey>;

const kvNamespace = z.object({ id: z.string(), title: z.string() });

export const ipsAnswer = enveloped(
  z.object({ ipv4_cidrs: z.array(z.string()), ipv6_cidrs: z.array(z.string()) }),
);
const enabled = z.boolean().nullish();
/** `null` and an absent member are the default. */
export const scriptSettingsAnswer = enveloped(
  z.object({
    logpush: z.boolean().nullish(),
    observability: z
      .object({
        enabled: z.boolean().optional(),
        logs: z.object({ enabled, invocation_logs: z.boolean().nullish() }).nullish(),
        traces: z.object({ enabled }).nullish(),
      })
      .nullish(),
    tail_consumers: z.array(z.object({ service: z.string() })).nullish(),
  }),
);
export const scriptBindingsAnswer = enveloped(
  z.object({ bindings: z.array(z.object({ name: z.string(), type: z.string() })).nullish() }),
);
export const zoneAnswer = enveloped(
  z.object({
    id: z.string(),
    name: z.string(),
    created_on: z.string(),
    status: z.string().optional(),
    plan: z.object({ legacy_id: z.string().nullish() }).nullish(),
  }),
);
export const dnsUsageAnswer = enveloped(z.object({ record_quota: z.number().nullish() }));
/** Google's tag gateway, a setting of the zone. */
export const tagGatewayAnswer = enveloped(
  z
    .object({
      enabled: z.boolean().nullish(),
      endpoint: z.string().nullish(),
      measurementId: z.string().nullish(),
    })
    .nullish(),
);
export const dnsPage = counted(dnsRecord);
export const dnsBatchAnswer = enveloped(z.object({}).nullable());
export const workersDomainsAnswer = enveloped(z.array(workersDomain));
export const routesAnswer = enveloped(z.array(workersRoute));
/** Older versions of the API return only the id. */
export const routeAnswer = enveloped(z.object({ id: z.string() }));
export const routeDeleted = z.object({ success: z.literal(true) });
export const namespacesPage = counted(kvNamespace);
export const kvKeysPage = enveloped(z.array(kvKey)).extend({
  result_info: z.object({ count: z.number(), cursor: z.string().optional() }),
});
export const kvTextsAnswer = enveloped(z.object({ values: z.record(z.string(), z.string().nullable()) }));
export const kvBulkAnswer = enveloped(
  z.object({ unsuccessful_keys: z.array(z.string()).default([]) }).nullable(),
);
