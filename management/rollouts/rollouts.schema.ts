import { z } from 'zod';
import { givenId, imageReference, siteId } from '../../sites/manifest/schema.ts';
import { examples } from '../http/examples.ts';
import {
  ROLLOUT_REASONS,
  ROLLOUT_SITE_STATES,
  ROLLOUT_STATUSES,
  type RolloutReason,
} from '../lifecycle/rollout.ts';
import { pageSchema } from '../view/page.ts';
import { changeList } from '../view/plan.ts';

const MOST_SITES = 10_000;
const MOST_AT_ONCE = 500;

const IMAGE = `gcr.io/cloud-tagging-10302018/gtm-cloud-image@sha256:${'0'.repeat(64)}`;

export const newRollout = z
  .strictObject({
    image: imageReference.meta({ description: 'from one of IMAGE_REPOSITORIES' }),
    sites: z
      .array(siteId)
      .min(1)
      .max(MOST_SITES)
      .refine((sites) => new Set(sites).size === sites.length, 'names a site twice')
      .optional()
      .meta({ description: 'in the order of the rollout; without it, all live sites, the oldest first' }),
    waves: z
      .array(z.int().min(1).max(MOST_AT_ONCE))
      .min(1)
      .max(20)
      .default([1, 5])
      .meta({ description: 'how many sites each wave changes; the last number holds for further waves' }),
    watchSeconds: z.int().min(0).max(86_400).default(60).meta({
      description: 'a wave ends once each of its sites has been ready with the image for this long',
    }),
  })
  .meta(
    examples({
      'two sites, then ten at a time': { image: IMAGE, waves: [2, 10], watchSeconds: 300 },
    }),
  );

export const rolloutParams = z.strictObject({ id: givenId });

const reason = z
  .enum(Object.keys(ROLLOUT_REASONS) as [RolloutReason, ...RolloutReason[]]) // Object.keys drops the key type
  .nullable();

const rollout = z.object({
  id: z.uuid(),
  image: z.string(),
  status: z.enum(ROLLOUT_STATUSES).meta({
    description: 'stopping: no further site is changed, and the wave that has begun is followed to its end',
  }),
  reason,
  detail: z
    .string()
    .nullable()
    .meta({ description: 'after a failure: the site, and what the host says of it' }),
  waveSizes: z.array(z.int()),
  watchSeconds: z.int(),
  actor: z.string(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  sites: z
    .partialRecord(z.enum(ROLLOUT_SITE_STATES), z.int())
    .meta({ description: 'how many sites have each state' }),
});
export const rolloutSummary = rollout.meta({ id: 'ImageRolloutSummary' });
export const rolloutList = pageSchema(rolloutSummary);

const rolloutSite = z.object({
  siteId: z.string(),
  containerId: z.uuid(),
  state: z.enum(ROLLOUT_SITE_STATES),
  reason,
  detail: z.string().nullable(),
  fromImage: z.string().nullable().meta({ description: 'before the rollout; null: its wave has not begun' }),
  commit: z.string().nullable(),
  since: z.iso.datetime().nullable(),
});

export const rolloutView = rollout
  .extend({
    waves: z.array(z.object({ number: z.int(), sites: z.array(rolloutSite) })).meta({
      description: 'the waves that have begun, then those that follow if no further site is skipped',
    }),
  })
  .meta({ id: 'ImageRollout' });

export const rolloutPlan = z
  .object({
    plan: z.object({
      changes: changeList,
      waves: z.array(z.array(z.string())).meta({ description: 'the sites of each wave' }),
    }),
  })
  .meta({ id: 'ImageRolloutPlan', description: 'what the rollout would change; nothing has changed' });
