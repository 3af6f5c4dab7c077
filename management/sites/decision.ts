import type { ParsedManifest } from '../../sites/manifest/load.ts';
import { describeProblem } from '../../sites/manifest/problem.ts';
import type { Absence } from '../../sites/repo/absences.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { type ContainerStatus, isProjectionReason, LIVE, type StatusReason } from '../lifecycle/status.ts';
import { isUnsettled, type SagaStep } from '../lifecycle/steps.ts';

/** A container as the projection found it at the start of its pass. */
export interface KnownSite {
  readonly id: string;
  readonly siteId: string;
  readonly status: ContainerStatus;
  readonly reason: StatusReason | null;
  /** The details of the reason, in words. */
  readonly detail: string | null;
  readonly manifest: ManifestView;
  /** The revision and the blob of the site's file that were projected last. */
  readonly revision: string | null;
  readonly blob: string | null;
  /** There is a site record: the provisioner has accepted the site at least once. */
  readonly isRecorded: boolean;
  /** Step of its running operation. */
  readonly step: SagaStep | null;
}

/**
 * Whether a site's file must be projected: its text is new, or it was refused before and the obstacle may be gone.
 * `later`: it must be projected when the running operation has settled.
 */
export function isDue(
  site: Pick<KnownSite, 'blob' | 'reason' | 'step'> | undefined,
  { blob }: { readonly blob: string },
): boolean | 'later' {
  if (site === undefined) return true;
  const isNew = site.blob !== blob || isProjectionReason(site.reason);
  return isNew && isUnsettled(site.step) ? 'later' : isNew;
}

/** Whether a site without a file in git is live, so that its removal starts unless there is an obstacle. */
export function isDeleted({ isRecorded, status, step }: KnownSite): boolean {
  return isRecorded && LIVE.includes(status) && !isUnsettled(step);
}

/** Why a site without a file in git isn't removed; `null` if it is removed. */
export function removalObstacle(site: string, absence: Absence | undefined): string | null {
  if (absence === undefined) return `it is unknown why ${site}.yaml is missing`;
  if (!absence.isProven) return absence.detail;
  const isProtected = absence.last?.state === 'present' && absence.last.protect;
  return isProtected ? `${site} is protected: restore ${site}.yaml and set protect: false first` : null;
}

/**
 * How a version of a site's file is applied. `remember`: it is a tombstone, and the site isn't live anyway. `ignore`:
 * it is invalid, and the site is unknown.
 */
type ProjectionDecision = 'remember' | 'ignore' | 'adopt' | 'refuse' | 'remove' | 'edit' | 'restore';

export function decideProjection(
  site: Pick<KnownSite, 'id' | 'status'> | undefined,
  parsed: ParsedManifest,
): ProjectionDecision {
  const isAbsent = parsed.ok && parsed.manifest.state === 'absent';
  if (isAbsent && (site === undefined || !LIVE.includes(site.status))) return 'remember';
  if (site === undefined) return parsed.ok ? 'adopt' : 'ignore';
  if (!parsed.ok || parsed.manifest.container !== site.id) return 'refuse';
  // The provisioner doesn't remove a protected site either.
  if (isAbsent) return parsed.manifest.protect ? 'refuse' : 'remove';
  return LIVE.includes(site.status) ? 'edit' : 'restore';
}

/** Why a file is refused, in words. */
export function describeRefusal(path: string, parsed: ParsedManifest): string {
  if (parsed.ok && parsed.manifest.state === 'absent' && parsed.manifest.protect) {
    return `${path}: the site is protected; set protect: false before you remove it`;
  }
  if (parsed.ok) return `${path}: names a container other than that of this site`;
  return parsed.problems.map((problem) => describeProblem(path, problem)).join('; ');
}
