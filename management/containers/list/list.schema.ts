import { z } from 'zod';
import { HEALTHS, SITE_STATES } from '../../../gitops/report/site-state.ts';
import { givenDomain } from '../../../sites/manifest/schema.ts';
import { STATUSES } from '../../lifecycle/status.ts';
import { SORT_KEYS } from '../../records/container-lists.repository.ts';
import { containerView, stateView, statusReason } from '../../view/container-view.ts';
import { pageQuery } from '../../view/page.ts';

const SORTS = SORT_KEYS.flatMap((key) => [key, `-${key}`] as const);

/** One or more of these, separated by commas, or the parameter several times. */
function severalOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z
    .preprocess(
      (given) => (Array.isArray(given) ? given : [given]).flatMap((one) => String(one).split(',')),
      z.array(z.enum(values)).min(1).max(20),
    )
    .meta({ description: `one or more, separated by commas: ${values.join(', ')}` });
}

const cursor = z.string().min(1).max(1024);

export const listQuery = z
  .strictObject({
    q: z.string().trim().min(1).max(200).optional().meta({
      description:
        'part of the name, the site id, a domain (also in Unicode) or a hostname, whatever its case',
    }),
    client: z.uuid().optional(),
    clientId: z.uuid().optional().meta({ description: 'the same as `client`', deprecated: true }),
    status: severalOf(STATUSES).optional(),
    health: severalOf(HEALTHS).optional(),
    state: severalOf(SITE_STATES).optional(),
    domain: givenDomain.optional(),
    sort: z.enum(SORTS).default('-createdAt').meta({
      description:
        'with `-`: the greatest first; `requests` and `errors` (their share) are of the last 24 hours',
    }),
    view: z
      .enum(['full', 'summary'])
      .default('full')
      .meta({ description: '`summary`: only what a list shows' }),
    cursor: cursor.optional().meta({ description: '`next` of the previous page' }),
    after: cursor.optional().meta({ description: 'the same as `cursor`', deprecated: true }),
    limit: pageQuery.limit,
  })
  .refine(({ client, clientId }) => (client ?? clientId) === (clientId ?? client), {
    path: ['clientId'],
    message: 'differs from `client`',
  });

const summary = z
  .object({
    id: z.uuid(),
    siteId: z.string(),
    client: z.uuid(),
    clientId: z.uuid().meta({ description: 'the same as `client`', deprecated: true }),
    name: z.string(),
    status: z.enum(STATUSES),
    statusReason: statusReason.nullable(),
    suspended: z.boolean(),
    serving: z.boolean(),
    health: z.enum(HEALTHS),
    state: stateView,
    domains: z.array(z.string()),
    traffic: z
      .object({
        requests: z.int(),
        errors: z.int().meta({ description: 'requests that were answered with an error code' }),
        hours: z.array(z.int().nullable()).meta({
          description: 'requests of each hour, the running one last; null: not known',
        }),
        lastVisitAt: z.iso
          .datetime()
          .nullable()
          .meta({ description: 'to a minute while minutes are kept, later to an hour or a day' }),
      })
      .nullable()
      .meta({ description: 'of the last 24 hours; null: this installation has collected none' }),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'ContainerSummary', description: 'what a list shows of a container' });
export type ContainerSummary = z.output<typeof summary>;

export const containerList = z.object({
  containers: z
    .union([z.array(containerView), z.array(summary)])
    .meta({ description: 'summaries with `view=summary`, else containers' }),
  next: z.string().nullable().meta({ description: 'pass it as `cursor`; null: this is the last page' }),
});

export const countsQuery = z.strictObject({ client: z.uuid().optional() });

const countsOf = <const Keys extends readonly [string, ...string[]]>(keys: Keys) =>
  z.object(Object.fromEntries(keys.map((key) => [key, z.int()])) as { [Key in Keys[number]]: z.ZodInt }); // typed without the keys

export const containerCounts = z
  .object({
    total: z.int(),
    state: countsOf(SITE_STATES),
    status: countsOf(STATUSES),
    health: countsOf(HEALTHS),
    suspended: z.int().meta({ description: 'of the containers that are up or being created' }),
  })
  .meta({ id: 'ContainerCounts' });
export type ContainerCounts = z.output<typeof containerCounts>;
