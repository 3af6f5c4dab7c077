import type { Change, Target } from '../appliers/contract.ts';

/** The reaction to drift: repair it, report it only, or ignore it (docs/reconciler.md, rule 11). */
export const DRIFT_MODES = ['enforce', 'warn', 'ignore'] as const;
export type DriftMode = (typeof DRIFT_MODES)[number];
export type DriftModes = Readonly<Partial<Record<Target, DriftMode>>>;

/** A change that would repair drift, and why it isn't made. */
export interface UnrepairedDrift {
  readonly change: Change;
  readonly why: 'warn' | 'repair_loop';
}

export interface DriftSplit {
  readonly changes: readonly Change[];
  /** Reported, not made. */
  readonly unrepaired: readonly UnrepairedDrift[];
  /** Those of `changes` that repair drift. */
  readonly drifted: readonly Change[];
}

/**
 * Separates the repairs of drift that aren't made from the other changes. `isDrift`: exactly this content was applied
 * before, so the manifest is the same and the target has changed. Deletes are never drift.
 */
export function splitDrift(
  changes: readonly Change[],
  rules: {
    readonly modes: DriftModes;
    isDrift(change: Change): boolean;
    isRepairLoop(change: Change): boolean;
  },
): DriftSplit {
  const kept: Change[] = [];
  const drifted: Change[] = [];
  const unrepaired: UnrepairedDrift[] = [];
  for (const change of changes) {
    const mode = rules.modes[change.target] ?? 'enforce';
    if (change.op === 'delete' || !rules.isDrift(change)) kept.push(change);
    else if (mode === 'warn') unrepaired.push({ change, why: 'warn' });
    else if (mode === 'enforce' && rules.isRepairLoop(change))
      unrepaired.push({ change, why: 'repair_loop' });
    else if (mode === 'enforce') {
      kept.push(change);
      drifted.push(change);
    }
  }
  return { changes: kept, unrepaired, drifted };
}
