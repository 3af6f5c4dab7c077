import { z } from 'zod';

/** The states of a site. Of those that hold, the first one names the site's state. */
export const SITE_STATES = [
  'removed',
  'off',
  'failing',
  'change_refused',
  'setting_up',
  'waits_for_dns',
  'paused',
  'serving',
] as const;
export type SiteStateName = (typeof SITE_STATES)[number];

/** What is known of a site. `null`: it isn't so. */
export interface SiteFacts {
  /** While its host waits with the removal, the site isn't removed: that is a `refusal`. */
  readonly removal: 'running' | 'done' | null;
  /** The manifest says `serving: false`. */
  readonly isOff: boolean;
  /**
   * `host`: it reports a fault, or can't apply what git says; `checks`: the last verification failed; `setup`: the
   * creation failed.
   */
  readonly fault: {
    readonly of: 'host' | 'checks' | 'setup';
    readonly detail: string | null;
    readonly remedy?: string | undefined;
  } | null;
  /** Some of its servers fail, and others serve. */
  readonly partial: { readonly detail: string | null } | null;
  /** Its host doesn't report, so that nobody knows how it is now. */
  readonly silence: { readonly detail: string | null } | null;
  /**
   * What git says isn't applied: the newest manifest is refused (`manifest`), another site holds what it names (`claim`),
   * or git no longer has the site and the host waits with the removal (`removal`).
   */
  readonly refusal: { readonly of: 'manifest' | 'claim' | 'removal'; readonly detail: string | null } | null;
  /** It has never been served, or not since it was restored. */
  readonly setup: { readonly detail: string | null } | null;
  /** What each domain waits for, if none is served; empty: at least one is served. */
  readonly unserved: readonly string[];
  /** The manifest says `suspend: true`. */
  readonly pause: { readonly detail: string | null } | null;
}

/** The state of a site, without the time since which it has it. */
export const siteStateSchema = z.object({
  name: z.enum(SITE_STATES),
  sentence: z.string(),
  /** What to do; `null`: nothing. */
  remedy: z.string().nullable(),
  /** The cause as it was reported. */
  detail: z.string().nullable(),
  /** The other states that hold, too. */
  also: z.array(z.enum(SITE_STATES)),
});
export type SiteState = z.infer<typeof siteStateSchema>;

export const HEALTHS = ['unknown', 'healthy', 'degraded'] as const;
export type Health = (typeof HEALTHS)[number];

/**
 * `degraded`: the site is failing, or some of its servers are. `unknown`: before it is served, once it is removed, and
 * while its host doesn't report.
 */
export function siteHealth({ removal, setup, fault, partial, silence }: SiteFacts): Health {
  if (removal !== null || setup !== null) return 'unknown';
  if (fault !== null || partial !== null) return 'degraded';
  return silence === null ? 'healthy' : 'unknown';
}

type Words = Omit<SiteState, 'name' | 'also'>;

/** The only place that derives a site's state: what shows one shows this (docs/http.md, State). */
export function siteState(facts: SiteFacts): SiteState {
  const holding = SITE_STATES.flatMap((name) => {
    const words = WORDS[name](facts);
    return words === null ? [] : [{ name, ...words }];
  });
  const [first, ...others] = holding;
  if (first === undefined) throw new Error('no state of a site holds');
  // Otherwise what fails of a site that is served, but is named by another state, would be said nowhere.
  const served = others.find(({ name }) => name === 'serving');
  const details = [first.detail, served?.detail ?? null].filter((detail) => detail !== null);
  return {
    ...first,
    detail: details.length === 0 ? null : details.join('; '),
    also: others.map(({ name }) => name),
  };
}

/** For each state: what is said of a site that has it; `null`: it doesn't hold. */
const WORDS: Readonly<Record<SiteStateName, (facts: SiteFacts) => Words | null>> = {
  removed({ removal }) {
    if (removal === null) return null;
    return removal === 'done'
      ? {
          sentence: 'It is removed: nothing of it runs.',
          remedy: 'Restore it if it is still needed.',
          detail: null,
        }
      : { sentence: 'It is being removed.', remedy: null, detail: null };
  },
  off({ isOff, removal }) {
    if (!isOff || removal !== null) return null;
    return {
      sentence: 'Serving is switched off: the edge answers every request with 403 serving_off.',
      remedy: 'Resume the site to switch serving on again.',
      detail: null,
    };
  },
  failing({ fault, removal }) {
    if (fault === null || removal !== null) return null;
    const { of, detail, remedy } = fault;
    return { ...FAULTS[of], ...(remedy === undefined ? {} : { remedy }), detail };
  },
  change_refused({ refusal, removal, setup }) {
    if (refusal === null || removal !== null) return null;
    const { of, detail } = refusal;
    return { ...REFUSALS[of === 'manifest' && setup !== null ? 'first' : of], detail };
  },
  setting_up({ setup, removal }) {
    if (setup === null || removal !== null) return null;
    return { sentence: 'It is being set up.', remedy: null, detail: setup.detail };
  },
  waits_for_dns(facts) {
    if (facts.unserved.length === 0 || !isUp(facts)) return null;
    return {
      sentence: 'None of its domains is served, because DNS doesn’t lead here.',
      remedy: 'Set the DNS records that are listed at its domains.',
      detail: facts.unserved.join('; '),
    };
  },
  paused({ pause, removal }) {
    if (pause === null || removal !== null) return null;
    return {
      sentence: 'It is suspended: it is served as it is, and changes wait.',
      remedy: 'Resume it to apply the changes.',
      detail: pause.detail,
    };
  },
  serving(facts) {
    const { isOff, fault, unserved, partial, silence } = facts;
    if (!isUp(facts) || isOff || fault !== null || unserved.length > 0) return null;
    if (silence !== null) {
      return {
        sentence: 'It was served when its host last reported.',
        remedy:
          'Find out why the host’s provisioner doesn’t answer, or start it again: tagyard doctor --host.',
        detail: silence.detail,
      };
    }
    if (partial !== null) {
      return {
        sentence: 'It is served, but not all of its servers run.',
        remedy: FAULTS.host.remedy,
        detail: partial.detail,
      };
    }
    return { sentence: 'It is served.', remedy: null, detail: null };
  },
};

function isUp({ removal, setup, fault }: SiteFacts): boolean {
  return removal === null && setup === null && fault?.of !== 'setup';
}

const FAULTS = {
  host: {
    sentence: 'Its host reports a fault. The last good state stays in force as far as it works.',
    remedy: 'Read the detail and the status of its resources; tagyard doctor <site> names remedies.',
  },
  checks: {
    sentence: 'The last verification found something that doesn’t work.',
    remedy: 'Follow the remedies of the failed checks, then verify it again.',
  },
  setup: {
    sentence: 'Setting it up failed, and nothing of it runs.',
    remedy: 'Read the detail, then create it again.',
  },
} as const;

const REFUSALS = {
  first: {
    sentence: 'Its manifest in git is refused, and it hasn’t been served yet.',
    remedy: 'Correct the site’s file in git.',
  },
  manifest: {
    sentence: 'The newest manifest in git is refused; the last good one is in force.',
    remedy: 'Correct the site’s file in git, or revert the commit that broke it: tagyard revert <site>.',
  },
  removal: {
    sentence:
      'Git no longer has the site, but its host waits with the removal: nothing of it is removed yet.',
    remedy:
      'If it is to be removed, do what the detail says, such as tagyard approve; else bring its file back: tagyard revert <site>.',
  },
  claim: {
    sentence: 'The newest manifest in git isn’t applied in full: another site holds a name or port of it.',
    remedy:
      'Remove the name or port from the site’s file, or from the other site; then this one continues by itself.',
  },
} as const;
