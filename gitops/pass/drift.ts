import type { Change, Target } from '../appliers/contract.ts';

/** What is done about a thing that somebody else changed: repair it, only say so, or leave it alone. */
export const DRIFT_MODES = ['enforce', 'warn', 'ignore'] as const;
export type DriftMode = (typeof DRIFT_MODES)[number];
export type DriftModes = Readonly<Partial<Record<Target, DriftMode>>>;

/** A change that would undo what happened to a thing since it was applied, and why it isn't made. */
export interface LeftDrift {
  readonly change: Change;
  readonly why: 'warn' | 'repair_loop';
}

export interface SortedChanges {
  readonly changes: readonly Change[];
  /** Reported and not made. */
  readonly left: readonly LeftDrift[];
}

/**
 * Takes out what is drift and not to be repaired. `isDrift` knows a change whose very content was applied before: the
 * wish is the same, so the world has moved; deletions are never drift, since nobody wishes for what they remove.
 */
export function sortDrift(
  changes: readonly Change[],
  rules: {
    readonly modes: DriftModes;
    isDrift(change: Change): boolean;
    isRepairLoop(change: Change): boolean;
  },
): SortedChanges {
  const kept: Change[] = [];
  const left: LeftDrift[] = [];
  for (const change of changes) {
    const mode = rules.modes[change.target] ?? 'enforce';
    if (change.op === 'delete' || !rules.isDrift(change)) kept.push(change);
    else if (mode === 'warn') left.push({ change, why: 'warn' });
    else if (mode === 'enforce' && rules.isRepairLoop(change)) left.push({ change, why: 'repair_loop' });
    else if (mode === 'enforce') kept.push(change);
  }
  return { changes: kept, left };
}
