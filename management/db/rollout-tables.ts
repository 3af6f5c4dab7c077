import type { Generated } from 'kysely';
import type { RolloutReason, RolloutSiteState, RolloutStatus } from '../lifecycle/rollout.ts';
import type { CreatedAt, Json, UpdatedAt } from './columns.ts';

export interface ImageRollouts {
  id: Generated<string>;
  seq: Generated<string>;
  image: string;
  /** How many sites each wave changes at once; the last number is that of all further waves. */
  waves: Json<number[]>;
  /** Seconds for which a site must be ready with the image. */
  watch_seconds: number;
  status: Generated<RolloutStatus>;
  reason: RolloutReason | null;
  detail: string | null;
  /** Who started it, in whose name the commits are made. */
  actor: Json<{ readonly subject: string; readonly name: string; readonly email: string }>;
  request_id: string;
  /** The process that runs it, and until when no other one may. */
  leased_by: string | null;
  leased_until: Date | null;
  created_at: CreatedAt;
  updated_at: UpdatedAt;
}

export interface ImageRolloutSites {
  rollout_id: string;
  /** Its place in the order of the rollout. */
  position: number;
  site_id: string;
  container_id: string;
  /** Numbered from 1; `null`: its wave has not begun. */
  wave: number | null;
  state: Generated<RolloutSiteState>;
  /** The image before the rollout; `null`: its wave has not begun. */
  from_image: string | null;
  reason: RolloutReason | null;
  detail: string | null;
  /** The commit that sets the new image, or the old one again; `null`: none is made. */
  revision: string | null;
  /** When it got its state. */
  since: Date | null;
  /** Since when it has been ready with the image. */
  well_since: Date | null;
}
