import { setTimeout as wait } from 'node:timers/promises';
import type { Applier, Change, Target } from '../appliers/contract.ts';
import { TerminalError } from '../base/errors.ts';
import type { Step } from '../report/report.ts';

export interface SiteRun {
  readonly changes: readonly Change[];
  /** Targets that couldn't be read in this pass: nothing that comes after them is done. */
  readonly unobserved: ReadonlyMap<Target, Error>;
  /** The whole site goes: its DNS records drain before the rest is taken down. */
  readonly removal: boolean;
  /** When the last DNS record of a site that goes was removed; `null`: none was, or it isn't known any more. */
  readonly withdrawnAt: Date | null;
  /** Aborted when another revision of this very site is known: the run ends after its current step. */
  readonly superseded: AbortSignal;
}

export interface ExecuteDeps {
  /** By target, in the order in which a site comes up. */
  readonly appliers: ReadonlyMap<Target, Applier>;
  readonly drainSeconds: number;
  /** DNS of a site that goes is gone: a later run must know since when, which may be another process's. */
  readonly onWithdrawn: (at: Date) => void;
  readonly onStep: (step: Step) => void;
}

export interface SiteOutcome {
  readonly done: readonly Change[];
  readonly failures: readonly { readonly change: Change; readonly error: Error }[];
  /** A target that couldn't be observed and stood in the way. */
  readonly unobserved: Error | null;
  /** True where trying again is pointless until something changes. */
  readonly terminal: boolean;
}

/**
 * Applies one site's changes: up in the order of `TARGETS`, then down in reverse (reconciler rule 6). What shares a
 * target runs together; the first target that fails ends the run, and the rest are skipped. What DNS led to is taken
 * down when the drain since its removal is over, whichever run removed it. Never throws for a failed change.
 */
export async function executeSite(
  run: SiteRun,
  deps: ExecuteDeps,
  signal: AbortSignal,
): Promise<SiteOutcome> {
  const up = run.changes.filter(({ op }) => op !== 'delete');
  const down = run.changes.filter(({ op }) => op === 'delete');
  const targets = [...new Set([...deps.appliers.keys(), ...run.changes.map(({ target }) => target)])];
  const stages = [
    ...targets.map((target) => ({ target, changes: up.filter((change) => change.target === target) })),
    ...targets.toReversed().map((target) => ({
      target,
      changes: down.filter((change) => change.target === target),
    })),
  ];
  const { drains, waitsForDrain } = drainRules(run, deps);
  for (const change of run.changes) deps.onStep(stepOf(change, 'queued'));

  let failures: SiteOutcome['failures'] = [];
  let unobserved: Error | null = null;
  const done: Change[] = [];
  const over = AbortSignal.any([signal, run.superseded]);
  const isStopped = () =>
    failures.some(({ change }) => !isForgiven(run, change, deps.appliers)) ||
    unobserved !== null ||
    over.aborted;
  let { withdrawnAt } = run;
  for (const { target, changes } of stages) {
    unobserved ??= run.unobserved.get(target) ?? null;
    if (changes.length === 0) continue;
    if (waitsForDrain(target) && !isStopped()) {
      if (withdrawnAt === null) {
        withdrawnAt = new Date();
        deps.onWithdrawn(withdrawnAt);
      }
      await drain(withdrawnAt, deps.drainSeconds, over);
    }
    if (isStopped()) {
      for (const change of changes) deps.onStep(stepOf(change, 'skipped'));
      continue;
    }
    const errors = await Promise.all(changes.map((change) => applyOne(change, deps, signal)));
    failures = [...failures, ...errors.filter((error) => error !== null)];
    done.push(...changes.filter((_, index) => errors[index] === null));
    // Nothing begins to drain until the last of them is gone.
    if (drains(target) && failures.length === 0) {
      withdrawnAt = new Date();
      deps.onWithdrawn(withdrawnAt);
    }
  }
  const hard = failures.filter(({ change }) => !isForgiven(run, change, deps.appliers));
  return { done, failures, unobserved, terminal: hard.some(({ error }) => error instanceof TerminalError) };
}

/** True for a failed delete that must not fail the removal of the site (see `Traits.mayOutliveSite`). */
export function isForgiven(
  run: Pick<SiteRun, 'removal'>,
  { target, op }: Change,
  appliers: ExecuteDeps['appliers'],
): boolean {
  return run.removal && op === 'delete' && appliers.get(target)?.mayOutliveSite === true;
}

/** In the removal of a site, targets that visitors find it by drain; what comes before them in the order waits. */
function drainRules(run: SiteRun, { appliers, drainSeconds }: ExecuteDeps) {
  const order = [...appliers.values()];
  const last = run.removal && drainSeconds > 0 ? order.findLastIndex((one) => one.drainsOnRemoval) : -1;
  const waiting = new Set(order.slice(0, Math.max(0, last)).map(({ target }) => target));
  const draining = order.slice(0, last + 1).filter((one) => one.drainsOnRemoval);
  const drained = new Set(draining.map(({ target }) => target));
  return {
    drains: (target: Target) => drained.has(target),
    waitsForDrain: (target: Target) => waiting.has(target),
  };
}

/** Waits for what is left of the drain; an abort ends the wait. A clock that was set back costs one whole drain. */
async function drain(since: Date, seconds: number, over: AbortSignal): Promise<void> {
  const left = since.getTime() + seconds * 1000 - Date.now();
  if (left <= 0) return;
  await wait(Math.min(left, seconds * 1000), undefined, { signal: over }).catch(() => undefined);
}

async function applyOne(
  change: Change,
  deps: ExecuteDeps,
  signal: AbortSignal,
): Promise<{ change: Change; error: Error } | null> {
  const startedAt = performance.now();
  const took = () => Math.round(performance.now() - startedAt);
  deps.onStep(stepOf(change, 'running'));
  try {
    const applier = deps.appliers.get(change.target);
    if (applier === undefined) throw new TerminalError(`nothing applies ${change.target} on this host`);
    await applier.apply(change, signal);
    deps.onStep({ ...stepOf(change, 'succeeded'), ms: took() });
    return null;
  } catch (cause) {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    deps.onStep({ ...stepOf(change, 'failed'), error: error.message, ms: took() });
    return { change, error };
  }
}

function stepOf({ target, key, op }: Change, status: Step['status']): Step {
  return { target, key, op, status, ms: 0 };
}
