/**
 * `stopping`: no further site is changed; the rollout ends as `stopped`, or as `failed` after a failure, when the sites
 * of its last wave have ended. `reverting`: the sites get their earlier images again.
 */
export const ROLLOUT_STATUSES = [
  'running',
  'stopping',
  'reverting',
  'succeeded',
  'failed',
  'stopped',
  'reverted',
] as const;
export type RolloutStatus = (typeof ROLLOUT_STATUSES)[number];

/** The statuses in which sites may still change. At most one rollout of an instance has one of them. */
export const ACTIVE_ROLLOUT: readonly RolloutStatus[] = ['running', 'stopping', 'reverting'];

export const ROLLOUT_SITE_STATES = [
  'pending',
  'changing',
  'swapped',
  'already',
  'skipped',
  'failed',
  'reverting',
  'reverted',
] as const;
export type RolloutSiteState = (typeof ROLLOUT_SITE_STATES)[number];

/** The states in which a site has or may have the rollout's image because of the rollout. */
export const REVERTIBLE: readonly RolloutSiteState[] = ['changing', 'swapped', 'failed'];

/** Why a rollout or one of its sites has its state: a closed set for dashboards. */
export const ROLLOUT_REASONS = {
  site_failed: 'a site failed, so no further one was changed',
  not_operator: 'the person who started the rollout is no longer an operator',
  not_ready: 'the site was not ready before, so it says nothing about the image and was not changed',
  not_live: 'the container was removed, or is still being created',
  suspended: 'the manifest says suspend, so the change would wait',
  host_failed: 'the host could not apply the change',
  timed_out: 'the site was not ready in time',
  changed_since: 'someone else has changed the site’s image since',
  change_refused: 'the change of the manifest was refused',
} as const;
export type RolloutReason = keyof typeof ROLLOUT_REASONS;
