import { z } from 'zod';
import { quotaRemedy } from '../../base/quota-remedy.ts';
import type { SiteCondition } from './site-condition.ts';

/** The provider's limits that are reported, each with its target and its words. */
const QUOTAS = {
  worker_routes: {
    target: 'route',
    what: 'Workers routes of the zone',
  },
  dns_records: {
    target: 'dns',
    what: 'DNS records of the zone',
  },
} as const;
const QUOTA_NAMES = ['worker_routes', 'dns_records'] as const satisfies (keyof typeof QUOTAS)[];

/** What to do about things that serve no site. */
const REMOVAL = 'Delete what is unused: a host that is still in use creates again what it needs.';

/** From this part of the limit on, a quota is near. */
const NEAR = 0.8;

/** `unknown`: the limit is not known. `quota_reached`: no further site fits. */
const QUOTA_STATES = ['ok', 'quota_near', 'quota_reached', 'unknown'] as const;

/** A quota in `GET /sites` and `GET /quotas`. */
const quotaStatus = z.object({
  name: z.enum(QUOTA_NAMES),
  /** How many things exist, including those that others made. */
  used: z.number(),
  /** `null`: unknown. */
  limit: z.number().nullable(),
  /**
   * `site`: each site's names have routes or records of their own; `wildcard`: the host has a wildcard for them.
   * Absent: `site`.
   */
  mode: z.enum(['site', 'wildcard']).optional(),
  /** How many things a new site adds. */
  perSite: z.number(),
  /** Texts about things that serve no site, each with its owner; absent: none. */
  unused: z.array(z.string()).optional(),
  state: z.enum(QUOTA_STATES),
  /** How much is used, for a person. */
  message: z.string(),
  /** What to do; `null`: nothing. */
  fix: z.string().nullable(),
});
export type QuotaStatus = z.infer<typeof quotaStatus>;

/** How much of a provider's limit is used, as of the last observation. */
export type QuotaFigures = Omit<QuotaStatus, 'state' | 'message' | 'fix'>;

/** The answer of `GET /quotas`. */
export const quotasSchema = z.object({ quotas: z.array(quotaStatus) });

interface CountedSite {
  readonly resources: readonly { readonly target: string; readonly missing?: true | undefined }[];
}

/** Adds state, message and fix to a quota. What the `sites` still lack needs room, too. */
export function statusOf(quota: QuotaFigures, sites: readonly CountedSite[]): QuotaStatus {
  const { name, mode = 'site', used, limit, perSite, unused = [] } = quota;
  const { target, what } = QUOTAS[name];
  const surplus = unused.length === 0 ? '' : `; unused: ${unused.join(', ')}`;
  if (limit === null) {
    const message = `${used} ${what}; the limit is unknown${surplus}`;
    return { ...quota, state: 'unknown', message, fix: surplus === '' ? null : REMOVAL };
  }
  // At most `perSite`: a wildcard may cover some of the missing names.
  const neededBy = ({ resources }: CountedSite) =>
    Math.min(perSite, resources.filter((one) => one.target === target && one.missing).length);
  const room = limit - used - sites.reduce((sum, site) => sum + neededBy(site), 0);
  const state = room < perSite ? 'quota_reached' : used >= limit * NEAR ? 'quota_near' : 'ok';
  const needed = state === 'quota_reached' ? `; a new site needs ${perSite}` : '';
  const message = `${used} of ${limit} ${what}${needed}${surplus}`;
  const fixes = [...(state === 'ok' ? [] : [quotaRemedy(name, mode)]), ...(surplus === '' ? [] : [REMOVAL])];
  return { ...quota, state, message, fix: fixes.length === 0 ? null : fixes.join(' ') };
}

/** What the quotas mean for each site of the host. */
export function conditionsOf(quotas: readonly QuotaStatus[]): SiteCondition[] {
  return quotas.flatMap(({ state, message }) =>
    state === 'quota_near' || state === 'quota_reached' ? [{ condition: state, message }] : [],
  );
}
