import type { DesiredState } from '../desired/desired-state.ts';

/** Reasons for a full pass (docs/reconciler.md, rule 1), and the sites that need a pass in any case. */
export interface ScopeReasons {
  readonly isFirstPass: boolean;
  /** A trigger asked for everything. */
  readonly isRequested: boolean;
  readonly isIntervalOver: boolean;
  /** A failed observation is due again. */
  readonly isObservationDue: boolean;
  readonly isHistoryRewritten: boolean;
  readonly isStateLost: boolean;
  /** Changes wait for an approval: only a full pass can say whether they still do. */
  readonly hasGuardedChanges: boolean;
  /** Sites that changed, have a queued operation or a due retry, or were named by a trigger. */
  readonly sites: ReadonlySet<string>;
}

/** The sites that the next pass covers; `null`: all. */
export function passScope(
  { sites, ...full }: ScopeReasons,
  desired: Pick<DesiredState, 'sites'>,
): ReadonlySet<string> | null {
  const removesSite = [...sites].some((site) => !desired.sites.has(site));
  return removesSite || Object.values(full).some(Boolean) ? null : sites;
}
