import { z } from 'zod';

const binding = z.looseObject({ name: z.string().min(1), type: z.string().min(1) });
export type Binding = z.infer<typeof binding>;

/** The settings of all versions of a worker. */
export const scriptSettings = z.object({
  logpush: z.boolean().nullish(),
  observability: z.looseObject({}).nullish(),
  tags: z.array(z.string()).nullish(),
  tail_consumers: z.array(z.looseObject({ service: z.string() })).nullish(),
});
export type ScriptSettings = z.infer<typeof scriptSettings>;

const annotations = z.record(z.string(), z.string());

/** The settings of one version. */
export const versionSettings = z.object({
  bindings: z.array(binding).optional(),
  compatibility_date: z.string().optional(),
  compatibility_flags: z.array(z.string()).optional(),
  usage_model: z.string().optional(),
  placement: z.looseObject({}).optional(),
  limits: z.looseObject({}).optional(),
  annotations: annotations.optional(),
});

/** The part `metadata` of an upload. */
export const uploadMetadata = versionSettings.extend({
  ...scriptSettings.shape,
  main_module: z.string().optional(),
  body_part: z.string().optional(),
  /** Types of bindings that the new version takes over from the one before it. */
  keep_bindings: z.array(z.string()).default([]),
});
export type UploadMetadata = z.infer<typeof uploadMetadata>;

/** What is stored of a version; `size`: the octets of all its modules together. */
export const storedVersion = versionSettings.extend({
  main: z.string().nullable(),
  etag: z.string(),
  size: z.number(),
  source: z.string(),
});
export type StoredVersion = z.infer<typeof storedVersion>;

export const deploymentInput = z.object({
  strategy: z.literal('percentage'),
  versions: z.array(z.object({ version_id: z.string(), percentage: z.number().min(0).max(100) })).min(1),
  annotations: annotations.optional(),
});
export type DeploymentInput = z.infer<typeof deploymentInput>;

export const storedDeployment = deploymentInput.extend({ source: z.string() });
