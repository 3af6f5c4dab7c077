import type { components } from '../../../../base/client/index.ts';

type Reason = NonNullable<components['schemas']['ImageRollout']['reason']>;

/** Why a rollout or one of its sites has its state. */
export const ROLLOUT_TEXTS: Readonly<Record<Reason, string>> = {
  site_failed: 'A site failed, so no further one was changed',
  not_operator: 'The person who started it is no longer an operator',
  not_ready: 'The site had a problem before the rollout, so it was not changed',
  not_live: 'The container was removed, or is still being created',
  suspended: 'The site is suspended, so its image was not changed',
  host_failed: 'The host could not apply the change',
  timed_out: 'The site was not ready in time',
  changed_since: 'Another person has changed the site’s image since',
  change_refused: 'The change of the manifest was refused',
};
