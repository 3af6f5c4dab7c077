import { setTimeout as wait } from 'node:timers/promises';
import { type Applier, type Change, TARGETS, type Target, TerminalError } from './appliers/contract.ts';
import type { Step } from './report.ts';

export interface SiteRun {
  readonly changes: readonly Change[];
  /** Targets that couldn't be read in this pass: nothing that comes after them is done. */
  readonly unobserved: ReadonlyMap<Target, Error>;
  /** The whole site goes: its DNS records drain before the rest is taken down. */
  readonly removal: boolean;
  /** Aborted when another revision of this very site is known: the run ends after its current step. */
  readonly superseded: AbortSignal;
}

export interface ExecuteDeps {
  readonly appliers: ReadonlyMap<Target, Applier>;
  readonly drainSeconds: number;
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
 * target runs together; the first target that fails ends the run, and the rest are skipped. Never throws for a failed
 * change.
 */
export async function executeSite(
  run: SiteRun,
  deps: ExecuteDeps,
  signal: AbortSignal,
): Promise<SiteOutcome> {
  const up = run.changes.filter(({ op }) => op !== 'delete');
  const down = run.changes.filter(({ op }) => op === 'delete');
  const stages = [
    ...TARGETS.map((target) => ({ target, changes: up.filter((change) => change.target === target) })),
    ...TARGETS.toReversed().map((target) => ({
      target,
      changes: down.filter((change) => change.target === target),
    })),
  ];
  for (const change of run.changes) deps.onStep(stepOf(change, 'queued'));

  let failures: SiteOutcome['failures'] = [];
  let unobserved: Error | null = null;
  const done: Change[] = [];
  const over = AbortSignal.any([signal, run.superseded]);
  for (const { target, changes } of stages) {
    unobserved ??= run.unobserved.get(target) ?? null;
    if (changes.length === 0) continue;
    const stopped =
      failures.some(({ change }) => !forgivable(run, change)) || unobserved !== null || over.aborted;
    if (stopped) {
      for (const change of changes) deps.onStep(stepOf(change, 'skipped'));
      continue;
    }
    const errors = await Promise.all(changes.map((change) => applyOne(change, deps, signal)));
    failures = [...failures, ...errors.filter((error) => error !== null)];
    done.push(...changes.filter((_, index) => errors[index] === null));
    const drains = run.removal && target === 'dns' && deps.drainSeconds > 0;
    // An abort ends the wait; the stages after it see the signal themselves.
    if (drains) await wait(deps.drainSeconds * 1000, undefined, { signal: over }).catch(() => undefined);
  }
  const hard = failures.filter(({ change }) => !forgivable(run, change));
  return { done, failures, unobserved, terminal: hard.some(({ error }) => error instanceof TerminalError) };
}

/** A container that won't go must not keep a site's teardown from counting; the next pass tries it again. */
export function forgivable(run: Pick<SiteRun, 'removal'>, change: Change): boolean {
  return run.removal && change.target === 'containers' && change.op === 'delete';
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
