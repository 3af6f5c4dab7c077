import { z } from 'zod';

/** Where a name stands with its certificate, in the order in which it comes about. */
export const CERTIFICATE_STATES = [
  'pending_dns',
  'pending_certificate',
  'live',
  'drifted',
  'expired',
] as const;
export type CertificateState = (typeof CERTIFICATE_STATES)[number];

/** Why a site is as it is: a closed set, so that dashboards and alerts can rely on the words. */
export const REASONS = {
  Ready: 'everything that the manifest asks for is applied and answers',
  Progressing: 'changes are being applied',
  Retrying: 'a step failed and is tried again with growing pauses',
  Failed: 'a step will keep failing until the manifest, the host or a permission changes',
  ObserveFailed: 'what is there could not be read, so nothing that depends on it is changed',
  InvalidManifest: 'the newest manifest is refused; the last valid one stays applied',
  UnsupportedVersion: 'the manifest is newer than this release understands; the last valid one stays applied',
  UndecryptableConfig: 'containerConfig is not encrypted to this host’s age recipient',
  NameTaken: 'another site claimed a name, port or token of this manifest first',
  Conflict: 'something that Tagyard does not own stands under a wanted name',
  Suspended: 'the manifest says suspend: drift is reported and nothing is changed',
  Blocked: 'a guard holds changes back until somebody approves them or lifts it',
  Frozen: 'a freeze file stops all changes on this host',
  CertificatePending: 'everything is applied, but a hostname of the site’s own has no valid certificate yet',
  Drifted: 'a thing was changed from outside; its drift is set to be reported, not repaired',
  RepairLoop: 'something keeps changing what is repaired, so it is left alone for a while',
  Removing: 'the site is being taken down',
  Removed: 'nothing of the site is left on this host',
} as const;
export type Reason = keyof typeof REASONS;

const step = z.object({
  target: z.string(),
  key: z.string(),
  op: z.enum(['create', 'update', 'delete']),
  status: z.enum(['queued', 'running', 'succeeded', 'failed', 'skipped']),
  error: z.string().optional(),
  /** Milliseconds that the last attempt took. */
  ms: z.number(),
});
export type Step = z.infer<typeof step>;

export const OPERATION_KINDS = [
  'provision',
  'custom_domain',
  'deprovision',
  'revert',
  'suspend',
  'resume',
  'image',
  'apply',
] as const;

/** What became of one request: `GET /operations/:id`. Times are ISO 8601. */
export const operationSchema = z.object({
  id: z.string(),
  site: z.string(),
  kind: z.enum(OPERATION_KINDS),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  revision: z.string(),
  /** Why it failed, for a person. */
  reason: z.string().optional(),
  steps: z.array(step),
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type Operation = z.infer<typeof operationSchema>;

const resource = z.object({
  target: z.string(),
  key: z.string(),
  state: z.enum(['applied', 'pending', 'failed', 'conflict', 'drifted']),
  hash: z.string().nullable(),
  lastError: z.string().optional(),
  nextRetry: z.string().optional(),
});
export type ResourceStatus = z.infer<typeof resource>;

/** Where a site stands on this host. `desired`, `applied` and `attempted` are revisions of the sites repository. */
export const siteStatusSchema = z.object({
  site: z.string(),
  host: z.string(),
  desired: z.string().nullable(),
  applied: z.string().nullable(),
  attempted: z.string().nullable(),
  ready: z.boolean(),
  reason: z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]), // Object.keys forgets the key type
  message: z.string(),
  health: z.enum(['healthy', 'degraded', 'unknown']),
  /** Since when the DNS records of a site that goes are gone (ISO 8601): the rest follows when they have drained. */
  withdrawnAt: z.iso.datetime().optional(),
  resources: z.array(resource),
});
export type SiteStatus = z.infer<typeof siteStatusSchema>;

/** How a hostname stands with its certificate. Times are ISO 8601. */
const certificate = z.object({
  target: z.literal('certificate'),
  /** The hostname. */
  key: z.string(),
  state: z.enum(CERTIFICATE_STATES),
  /** For a person who can act on it; empty where there is nothing to say. */
  reason: z.string(),
  issuer: z.string().nullable(),
  notAfter: z.string().nullable(),
  /** What DNS answered; `null`: it couldn't be asked, wasn't yet, or doesn't matter (`tls: files`). */
  addresses: z.array(z.string()).nullable(),
  /** `null`: with the next look at the proxy. */
  nextCheck: z.string().nullable(),
});
export type CertificateStatus = z.infer<typeof certificate>;

/** As `GET /sites` and `GET /sites/:site` answer. */
export const shownSiteSchema = siteStatusSchema.extend({
  resources: z.array(z.union([certificate, resource])),
});
export type ShownSite = z.infer<typeof shownSiteSchema>;

/** Certificates are listed among the resources; no other target has this name. */
export function isCertificate(one: ResourceStatus | CertificateStatus): one is CertificateStatus {
  return one.target === 'certificate';
}

/** A plan as `POST /plan` and `tagyard plan` show it. */
export const planReportSchema = z.object({
  revision: z.string().nullable(),
  checksum: z.string(),
  changes: z.array(
    z.object({
      site: z.string(),
      target: z.string(),
      key: z.string(),
      op: z.enum(['create', 'update', 'delete']),
      summary: z.string(),
    }),
  ),
  blocked: z.array(z.object({ reason: z.string(), detail: z.string() })),
});
export type PlanReport = z.infer<typeof planReportSchema>;

const siteDiff = z.object({
  site: z.string(),
  /** The file as it was last applied; `null`: never, or it was gone. */
  before: z.string().nullable(),
  after: z.string().nullable(),
});
export type SiteDiff = z.infer<typeof siteDiff>;

/** `POST /diff`: the files that are not yet applied as they stand at `revision`. */
export const diffReportSchema = z.object({ revision: z.string(), sites: z.array(siteDiff) });

/** `POST /apply`: an operation for each site that has something to do. */
export const applyAnswerSchema = z.object({
  revision: z.string(),
  checksum: z.string(),
  operations: z.array(z.object({ site: z.string(), id: z.string(), url: z.string() })),
});
