import { z } from 'zod';
import { quotasSchema } from '../../gitops/report/quotas.ts';
import {
  approvalSchema,
  healthSchema,
  planReportSchema,
  REASONS,
  type Reason,
} from '../../gitops/report/report.ts';
import { examples } from '../http/examples.ts';
import { STATUSES } from '../lifecycle/status.ts';
import { pageQuery, pageSchema } from '../view/page.ts';

const reason = z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]); // Object.keys drops the key type

export const hostList = pageSchema(
  z
    .object({
      name: z.string(),
      state: z
        .enum(['ready', 'not_ready', 'unreachable'])
        .meta({ description: 'not_ready: newer revisions can’t be planned; the reason is in `problem`' }),
      problem: z.string().nullable(),
      revision: z.string().nullable().meta({ description: 'the revision of its last pass' }),
      ports: z.object({ size: z.int(), free: z.int() }).meta({ description: 'pairs of the port pool' }),
      containers: z.partialRecord(z.enum(STATUSES), z.int()),
      sites: z.record(z.string(), z.int()).meta({ description: 'sites by their reason on the host' }),
      quotas: quotasSchema.shape.quotas,
      checks: healthSchema.shape.checks.meta({ description: 'disk, memory of the engine, proxy and so on' }),
      asOf: z.iso.datetime(),
    })
    .meta({ id: 'Host' }),
);

export const newPlan = z
  .strictObject({
    ref: z.string().min(1).max(200).optional().meta({
      description: 'a branch or commit; by default the newest revision, whose plan alone can be approved',
    }),
  })
  .meta(examples({ 'the newest revision': {}, 'a branch': { ref: 'main' } }));
export const planParams = z.strictObject({ checksum: z.string().regex(/^[0-9a-zA-Z:_-]{1,64}$/) });
export const planView = planReportSchema
  .extend({
    guarded: z.int().meta({ description: 'how many of its changes are held until the plan is approved' }),
    ref: z.string().nullable(),
    actor: z.string(),
    createdAt: z.iso.datetime(),
    approvedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'InstancePlan' });
export const approvalView = approvalSchema.meta({ id: 'Approval' });

const planSummary = planView
  .omit({ changes: true })
  .extend({
    changes: z.int().meta({ description: 'how many; GET /plans/:checksum has them' }),
    held: z.int().meta({ description: 'how many of them are held, for any reason' }),
    waiting: z.boolean().meta({
      description:
        'the plan is of the newest revision, guards hold changes of it, and no one has approved it; an approval is accepted while the host still plans the same',
    }),
  })
  .meta({ id: 'InstancePlanSummary' });
export type PlanSummary = z.output<typeof planSummary>;
export const planList = pageSchema(planSummary).meta({ id: 'PlanList', description: 'the newest first' });
export const plansQuery = z.strictObject({
  waiting: z.enum(['0', '1']).default('0').meta({ description: '`1`: only those that wait for an approval' }),
  ...pageQuery,
});

export const hostsQuery = z.strictObject(pageQuery);
export const driftQuery = z.strictObject(pageQuery);
export const driftList = pageSchema(
  planReportSchema.shape.changes.element.extend({ containerId: z.uuid().nullable() }),
)
  .extend({ asOf: z.iso.datetime(), revision: z.string().nullable() })
  .meta({ id: 'Drift', description: 'by site, target and key; each page is a new observation' });

const resource = z.object({
  key: z.string(),
  state: z
    .string()
    .meta({ description: 'applied, pending, failed, conflict, drifted; of a certificate, its own states' }),
  detail: z.string().nullable().meta({ description: 'the last error, or what a certificate waits for' }),
  nextAt: z.string().nullable().meta({ description: 'when it is tried or checked again' }),
  notAfter: z.string().nullable().meta({ description: 'of a certificate' }),
});
export const resourceTree = z
  .object({
    asOf: z.iso.datetime(),
    ready: z.boolean(),
    reason,
    message: z.string(),
    desired: z.string().nullable(),
    applied: z.string().nullable(),
    targets: z
      .array(z.object({ target: z.string(), state: z.string(), resources: z.array(resource) }))
      .meta({ description: 'from the network outwards to DNS; the state is that of its worst resource' }),
  })
  .meta({ id: 'Resources' });

export const changesQuery = z.strictObject({
  client: z.uuid().optional(),
  limit: pageQuery.limit,
  cursor: z
    .string()
    .regex(/^(?:\d{1,18}|[0-9a-f]{40,64})$/)
    .optional()
    .meta({ description: '`next` of the previous page' }),
});
export const commitList = pageSchema(
  z
    .object({
      commit: z.string(),
      at: z.string(),
      author: z.string(),
      subject: z.string(),
      reason: z.string().nullable(),
      requestId: z.string().nullable(),
      sites: z
        .array(z.object({ siteId: z.string(), containerId: z.uuid().nullable() }))
        .meta({ description: 'only those that the caller may see' }),
    })
    .meta({ id: 'InstanceChange' }),
);

export const endingQuery = z.strictObject({
  days: z.coerce.number().int().min(1).max(90).default(14),
});
export const endingList = z
  .object({
    asOf: z.iso.datetime(),
    hostAnswers: z
      .boolean()
      .meta({ description: 'false: the certificates are missing, because the provisioner doesn’t answer' }),
    items: z.array(
      z
        .object({
          kind: z.enum(['certificate', 'proof', 'loader_token', 'forwarder_token']).meta({
            description:
              '`certificate`: of a hostname; `proof`: of a domain whose record is missing; the tokens are old ones, accepted until then',
          }),
          at: z.iso.datetime(),
          subject: z.string().nullable().meta({ description: 'the hostname or domain; null: the container' }),
          containerId: z.uuid(),
          name: z.string().meta({ description: 'of the container' }),
        })
        .meta({ id: 'Ending' }),
    ),
    next: z.null().meta({ description: 'there is one page: the first 200, the soonest first' }),
  })
  .meta({ id: 'EndingList' });
