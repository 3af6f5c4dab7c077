import { z } from 'zod';
import { quotasSchema } from './quotas.ts';
import { siteConditionSchema } from './site-condition.ts';
import { HEALTHS, siteStateSchema } from './site-state.ts';

/** The states of a hostname's certificate, in the order in which they normally follow each other. */
export const CERTIFICATE_STATES = [
  'pending_dns',
  'pending_certificate',
  'live',
  'drifted',
  'expired',
] as const;
export type CertificateState = (typeof CERTIFICATE_STATES)[number];

/** Why a site has its condition. The set is closed: dashboards and alerts can rely on the keys. */
export const REASONS = {
  Ready: 'everything that the manifest asks for is applied and healthy',
  Progressing: 'changes are being applied',
  Retrying: 'a step failed and is retried with increasing pauses',
  QuotaReached: 'the provider accepts no more records or routes; the site is retried every half hour',
  Failed: 'a step fails until the manifest, the host or a permission changes',
  ObserveFailed: 'a target could not be observed, so nothing that depends on it is changed',
  InvalidManifest: 'the newest manifest is invalid; the last valid one stays applied',
  UnsupportedVersion: 'the manifest needs a newer release; the last valid one stays applied',
  UndecryptableConfig: 'a secret of the manifest is not encrypted to this host’s age recipient',
  NameTaken: 'a name, port or token of this manifest is the installation’s, or another site claimed it first',
  Conflict: 'an object with a desired name is not owned by this host',
  Suspended: 'the manifest says suspend: pending changes are reported, nothing is changed',
  Blocked: 'a guard blocks changes; the message says what lifts it',
  Frozen: 'a freeze file or annotation stops all changes on this host',
  CertificatePending: 'everything is applied, but a hostname of the site has no valid certificate yet',
  SourceUnavailable:
    'the sites repository can’t be read; the last revision that could be read is applied and stays enforced',
  NotIsolated:
    'everything is applied, but the host’s firewall doesn’t keep the containers from private addresses',
  Unhealthy: 'a tag server of the site doesn’t pass its health check; it is restarted or replaced',
  Drifted: 'an object was changed from outside; DRIFT_MODES says to report this, not to repair it',
  RepairLoop: 'something keeps changing an object after its repair, so repairs are paused',
  Removing: 'the site is being removed',
  Removed: 'nothing of the site is left on this host',
} as const;
export type Reason = keyof typeof REASONS;

/**
 * What a reason says of a site that is up. `well`: it is as git says; `changing`: nothing yet; `refused`: the newest
 * manifest can't be used, and the last one that could be used stays applied; `suspended`: changes wait, as was asked for;
 * `gone`: it is or is being removed; `trouble`: the host can't apply or keep what git says.
 */
const MEANINGS: Readonly<Record<Reason, 'well' | 'changing' | 'refused' | 'suspended' | 'gone' | 'trouble'>> =
  {
    Ready: 'well',
    SourceUnavailable: 'well',
    Progressing: 'changing',
    InvalidManifest: 'refused',
    UnsupportedVersion: 'refused',
    UndecryptableConfig: 'refused',
    NameTaken: 'refused',
    Suspended: 'suspended',
    Removing: 'gone',
    Removed: 'gone',
    Retrying: 'trouble',
    QuotaReached: 'trouble',
    Failed: 'trouble',
    ObserveFailed: 'trouble',
    Conflict: 'trouble',
    Blocked: 'trouble',
    Frozen: 'trouble',
    CertificatePending: 'trouble',
    NotIsolated: 'trouble',
    Unhealthy: 'trouble',
    Drifted: 'trouble',
    RepairLoop: 'trouble',
  };

/** What a reason means; an unknown one, of a newer host, means trouble. */
export function meaningOf(reason: string): (typeof MEANINGS)[Reason] {
  return Object.hasOwn(MEANINGS, reason) ? MEANINGS[reason as Reason] : 'trouble'; // it is one of its keys
}

/** Why the newest manifest isn't used; `null`: it is. An older host says it by the reason alone. */
export function refusalIn({
  reason,
  message,
  refusal,
}: {
  readonly reason: string;
  readonly message: string;
  readonly refusal?: string | undefined;
}): string | null {
  return refusal ?? (meaningOf(reason) === 'refused' ? toldOf(reason, message) : null);
}

/** A reason with its message, for people. */
export function toldOf(reason: string, message: string): string {
  return message === '' ? reason : `${reason}: ${message}`;
}

/** Reasons that lie with the host, its targets or an operator: the manifest itself is not at fault. */
export const HOST_FAULTS: readonly Reason[] = [
  'ObserveFailed',
  'UndecryptableConfig',
  'UnsupportedVersion',
  'Suspended',
  'Blocked',
  'Frozen',
  'CertificatePending',
  'QuotaReached',
  'NotIsolated',
  'Unhealthy',
  'Drifted',
  'RepairLoop',
];

const step = z.object({
  target: z.string(),
  key: z.string(),
  op: z.enum(['create', 'update', 'delete']),
  status: z.enum(['queued', 'running', 'succeeded', 'failed', 'skipped']),
  error: z.string().optional(),
  /** Milliseconds that the last attempt took. */
  ms: z.number(),
  /** When the last attempt began and ended (ISO 8601). */
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
});
export type Step = z.infer<typeof step>;

const OPERATION_KINDS = [
  'provision',
  'custom_domain',
  'deprovision',
  'revert',
  'suspend',
  'resume',
  'image',
  'apply',
] as const;

/** The progress and result of one request: `GET /operations/:id`. Times are ISO 8601. */
export const operationSchema = z.object({
  id: z.string(),
  site: z.string(),
  kind: z.enum(OPERATION_KINDS),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  revision: z.string(),
  /** Why it failed, for a person. */
  reason: z.string().optional(),
  /** The host, its targets or a guard made it fail, not the manifest. The site is retried. */
  fault: z.literal('host').optional(),
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
  /** Nothing is there yet: it is still to be created. */
  missing: z.literal(true).optional(),
  lastError: z.string().optional(),
  nextRetry: z.string().optional(),
});
export type ResourceStatus = z.infer<typeof resource>;

/** The status of a site on this host. `desired`, `applied` and `attempted` are revisions of the sites repository. */
export const siteStatusSchema = z.object({
  site: z.string(),
  host: z.string(),
  desired: z.string().nullable(),
  applied: z.string().nullable(),
  attempted: z.string().nullable(),
  ready: z.boolean(),
  reason: z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]), // Object.keys forgets the key type
  message: z.string(),
  /** Why the newest manifest isn't used, whatever else the reason says. Missing: it is used. */
  refusal: z.string().optional(),
  /**
   * Why a site that git no longer has, or that is `state: absent`, isn't removed: what holds that, and what lifts it. The
   * site runs as before. Missing: nothing holds it.
   */
  heldRemoval: z.string().optional(),
  /** Only servers of the site fail, and others of them serve what git says. */
  partial: z.literal(true).optional(),
  /** The manifest says `suspend`: nothing is changed, and drift isn't repaired. */
  suspended: z.literal(true).optional(),
  /** The manifest says `serving: false`: the edge answers nothing of the site. */
  servingOff: z.literal(true).optional(),
  /** The places where visitors are identified before they choose about consent, as text for people. Missing: none. */
  identifies: z.string().optional(),
  /** When the last DNS record of a site that is being removed was deleted (ISO 8601). The drain starts then. */
  withdrawnAt: z.iso.datetime().optional(),
  resources: z.array(resource),
});
export type SiteStatus = z.infer<typeof siteStatusSchema>;

/** The certificate of a hostname. Times are ISO 8601. */
export const certificateSchema = z.object({
  target: z.literal('certificate'),
  /** The hostname. */
  key: z.string(),
  state: z.enum(CERTIFICATE_STATES),
  /** What is missing, for a person who can act on it; may be empty. */
  reason: z.string(),
  issuer: z.string().nullable(),
  /** Unset: an older host. */
  notBefore: z.string().nullable().optional(),
  notAfter: z.string().nullable(),
  /** What DNS answered; `null`: no answer (yet), or DNS doesn't matter (`tls: files`). */
  addresses: z.array(z.string()).nullable(),
  /** `null`: the next check comes with the next observation of the proxy. */
  nextCheck: z.string().nullable(),
});
export type CertificateStatus = z.infer<typeof certificateSchema>;

/** A site in `GET /sites` and `GET /sites/:site`. */
export const shownSiteSchema = siteStatusSchema.extend({
  /** As far as this host knows it: management knows more of domains and verifications. Unset: an older host. */
  state: siteStateSchema.optional(),
  health: z.enum(HEALTHS),
  resources: z.array(z.union([certificateSchema, resource])),
  /** Quotas that are near or reached, and a preview server that didn't start. The site may be ready all the same. */
  conditions: z.array(siteConditionSchema).optional(),
});
export type ShownSite = z.infer<typeof shownSiteSchema>;

/** The answer of `GET /sites`. */
export const sitesAnswerSchema = z.object({
  revision: z.string().nullable(),
  problem: z.string().nullable(),
  quotas: quotasSchema.shape.quotas.default([]),
  sites: z.array(shownSiteSchema),
});
export type SitesAnswer = z.infer<typeof sitesAnswerSchema>;

/** The answer of `POST /plan`, which `tagyard plan` prints. */
export const planReportSchema = z.object({
  revision: z.string().nullable(),
  checksum: z.string(),
  changes: z.array(
    z.object({
      site: z.string(),
      target: z.string(),
      key: z.string(),
      op: z.enum(['create', 'update', 'delete']),
      /** What is desired. For drift, the same was applied before. */
      summary: z.string(),
      /** True if the change repairs drift: the target was changed after the manifest was applied. */
      drift: z.boolean(),
      /** What is there now, for a person; `null`: nothing is there. */
      found: z.string().nullable(),
      /** Why it isn't applied, for example `frozen` or `suspended`; empty: nothing holds it. */
      held: z.array(z.string()),
    }),
  ),
  blocked: z.array(z.object({ reason: z.string(), detail: z.string() })),
});
export type PlanReport = z.infer<typeof planReportSchema>;

/** The answer of `POST /approve`. */
export const approvalSchema = z.object({
  revision: z.string(),
  checksum: z.string(),
  /** How many changes waited for this approval; 0: it has no effect. */
  approved: z.number(),
  /** What still holds the approved changes. */
  held: z.array(z.object({ reason: z.string(), detail: z.string() })),
});

/** The answer of `GET /sites/:site/edge`: whether the edge answers for the site as its newest manifest asks. */
export const edgeAnswerSchema = z.object({ served: z.boolean(), detail: z.string() });
export type EdgeAnswer = z.infer<typeof edgeAnswerSchema>;

const partCheck = z.object({
  /** The part of the installation: `disk`, `proxy`. */
  name: z.string(),
  status: z.enum(['passed', 'failed', 'skipped']),
  detail: z.string(),
  /** What to do about a failure. */
  fix: z.string().nullable(),
});
export type PartCheck = z.infer<typeof partCheck>;

/** The answer of `GET /health`: the checks of this host's parts, each within a time limit. */
export const healthSchema = z.object({ checks: z.array(partCheck) });

const siteDiff = z.object({
  site: z.string(),
  /** The file as it was last applied; `null`: there was none, or git no longer has that revision. */
  before: z.string().nullable(),
  after: z.string().nullable(),
});
export type SiteDiff = z.infer<typeof siteDiff>;

/** The answer of `POST /diff`: the files of `revision` that differ from what is applied. */
export const diffReportSchema = z.object({ revision: z.string(), sites: z.array(siteDiff) });

/** The answer of `POST /apply`: an operation for each site with changes. */
export const applyAnswerSchema = z.object({
  revision: z.string(),
  checksum: z.string(),
  operations: z.array(z.object({ site: z.string(), id: z.string(), url: z.string() })),
});
