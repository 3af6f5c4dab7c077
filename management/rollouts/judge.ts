import type { ShownSite } from '../../gitops/report/report.ts';
import { isChangeable, watchedCondition } from '../../gitops/report/rollout.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { ContainerStatus } from '../lifecycle/status.ts';
import type { WaveStart } from './rollouts.repository.ts';

const CHANGEABLE: readonly ContainerStatus[] = ['active', 'verified', 'verification_failed'];

/** A site as its wave begins. */
interface Before {
  readonly site: string;
  readonly status: ContainerStatus;
  readonly manifest: Pick<Manifest, 'image' | 'suspend'>;
  /** `null`: the host doesn't know it. */
  readonly shown: Pick<ShownSite, 'ready' | 'reason' | 'message'> | null;
  /** Newest first. */
  readonly history: readonly { readonly revision: string; readonly subject: string }[];
}

/**
 * Whether a site gets the image, has it already, or is skipped because it can't show whether the image works.
 */
export function startOfSite({ site, status, manifest, shown, history }: Before, image: string): WaveStart {
  const start = { site, fromImage: manifest.image, reason: null, detail: null };
  if (!CHANGEABLE.includes(status)) return { ...start, state: 'skipped', reason: 'not_live', detail: status };
  if (manifest.suspend) return { ...start, state: 'skipped', reason: 'suspended' };
  if (shown?.ready && manifest.image === image) return { ...start, state: 'already' };
  if (shown !== null && isChangeable({ site, history, ready: shown.ready })) {
    return { ...start, state: 'changing' };
  }
  const detail = shown === null ? 'the host doesn’t know the site' : conditionOf(shown);
  return { ...start, state: 'skipped', reason: 'not_ready', detail };
}

/** What the host says of a changed site. */
interface Observed {
  readonly shown: Pick<ShownSite, 'ready' | 'reason'>;
  /** `isAttempted`: the last attempt contains the change; `isApplied`: the last state applied in full does. */
  readonly isAttempted: boolean;
  readonly isApplied: boolean;
}

/** `ready`: the host has applied the change in full, and its own checks of the site pass. */
export function watched({ shown, isAttempted, isApplied }: Observed): 'failed' | 'ready' | 'pending' {
  // A commit that changes nothing on the host, such as a return to the image that the host still has, is applied
  // without an attempt.
  if (!isAttempted && !isApplied) return 'pending';
  const condition = watchedCondition(shown);
  if (condition !== 'ready') return condition;
  return isApplied ? 'ready' : 'pending';
}

export function conditionOf({ reason, message }: Pick<ShownSite, 'reason' | 'message'>): string {
  return message === '' ? reason : `${reason}: ${message}`;
}
