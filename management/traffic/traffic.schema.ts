import { z } from 'zod';
import { dryRunQuery } from '../view/plan.ts';
import { probesQuery } from '../view/probes.ts';

const byValue = z.record(z.string(), z.int());
const milliseconds = z.number().nullable().meta({ description: 'milliseconds; null: no request' });

const point = z
  .object({
    time: z.iso.datetime().meta({ description: 'start of the step' }),
    requests: z.int(),
    events: z.int().meta({ description: 'events of analytics; a request can have none or many' }),
    routes: byValue.meta({ description: 'requests by the route’s pattern; an empty one: no route matched' }),
    statuses: byValue.meta({ description: 'requests by `2xx`, `4xx` …' }),
    cache: byValue.meta({
      description: 'requests of routes with a cache, by `hit`, `miss`, `stale`, `bypass`',
    }),
    blocked: z.int().meta({ description: 'reports by pages that something was blocked' }),
    reports: z.int().meta({ description: 'all reports about blockers' }),
    errors: z.int().meta({ description: 'requests that were answered with an error code' }),
    lostHits: z.int().meta({
      description: 'hits that were answered with an error code; `cause` of the requests says why',
    }),
    latency: z
      .object({ p50: milliseconds, p95: milliseconds, p99: milliseconds })
      .meta({ description: 'from the request to the answer’s headers; off by at most a tenth' }),
    consent: byValue.meta({
      description: 'requests whose consent is known, by `all`, `analytics`, `ads`, `none`',
    }),
    consentShare: z.number().nullable().meta({
      description: 'the fraction of `all` among the requests whose consent is known; null: there are none',
    }),
    countries: byValue.meta({ description: 'requests by the visitor’s country' }),
    bytesIn: z.int().meta({ description: 'octets of the bodies that were received' }),
    bytesOut: z.int().meta({ description: 'octets of the bodies that were sent' }),
    bots: z.int(),
    webContainerVersions: byValue.meta({
      description: 'delivered scripts of the web container, by the version that they state',
    }),
  })
  .meta({ id: 'TrafficPoint' });

export const rangeList = z.array(z.object({ from: z.iso.datetime(), to: z.iso.datetime() })).meta({
  description:
    'times that are not, or not completely, known: not collected yet, deleted, or too old for this step. A step within them has a point only if a part of it is known',
});

export const trafficView = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    step: z.int(),
    points: z.array(point),
    missing: rangeList,
  })
  .meta({ id: 'Traffic' });

export const trafficQuery = z.strictObject({
  from: z.iso.datetime({ offset: true }).optional().meta({ description: 'default: 24 hours before `to`' }),
  to: z.iso.datetime({ offset: true }).optional().meta({ description: 'may be in the future; default: now' }),
  step: z
    .enum(['60', '3600', '86400'])
    .default('3600')
    .transform(Number)
    .meta({ description: 'seconds of a point; hours and days are those of UTC' }),
  probes: probesQuery,
});

export const deletionQuery = dryRunQuery;
export const deletionList = z
  .object({
    deletions: z.array(
      z.object({
        container: z.uuid(),
        until: z.iso.datetime().meta({ description: 'records before this time are deleted' }),
        requestedAt: z.iso.datetime(),
        objects: z.int().meta({ description: 'objects of the raw logs that had such records' }),
        records: z.int(),
        completedAt: z.iso.datetime().nullable().meta({
          description: 'null: the raw logs are still being searched; what arrives late is deleted on arrival',
        }),
        logsDeletedAt: z.iso.datetime().nullable().meta({
          description:
            'when the host finished deleting what the tag servers had printed (`…/container-logs`)',
        }),
      }),
    ),
  })
  .meta({ id: 'TrafficDeletions' });
