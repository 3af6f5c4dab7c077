import { type Clock, systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import type { Applier, Change, Target } from '../appliers/contract.ts';
import type { Step } from '../report/report.ts';

export interface SiteRun {
  readonly changes: readonly Change[];
  /** Targets that couldn't be observed in this pass: their own changes and all later ones are skipped. */
  readonly unobserved: ReadonlyMap<Target, Error>;
  /** The whole site is removed: visitors drain after the delete of its DNS records. */
  readonly removal: boolean;
  /** When the last DNS record of the site was deleted; `null`: none was, or the time is unknown. */
  readonly dnsRemovedAt: Date | null;
  /**
   * Aborts when a newer revision changes this site: the run ends after its current step, or at once if that step waits.
   */
  readonly superseded: AbortSignal;
}

interface ExecuteDeps {
  /** The appliers by target, in the order in which the resources of a site are created. */
  readonly appliers: ReadonlyMap<Target, Applier>;
  readonly drainSeconds: number;
  /** Called when the drain starts. Save the time: a later run, even of another process, continues this drain. */
  readonly onDnsRemoved: (at: Date) => void;
  readonly onStep: (step: Step) => void;
  /** Called with what a change waits for; empty: it no longer waits for anything unusual. */
  readonly onProgress?: (change: Change, message: string) => void;
  readonly clock?: Clock;
}

export interface SiteOutcome {
  readonly done: readonly Change[];
  readonly failures: readonly { readonly change: Change; readonly error: Error }[];
  /** The failed observation that ended the run. */
  readonly unobserved: Error | null;
  /** A retry is useless until the manifest, the host or a permission changes. */
  readonly terminal: boolean;
}

/**
 * Applies one site's changes: creates and updates in the order of the appliers, then deletes in reverse order
 * (docs/reconciler.md, rule 6). Changes of one target run together. The first target with a failure that isn't optional
 * ends the run, and the remaining steps are skipped. Never throws for a failed change.
 */
export async function executeSite(
  run: SiteRun,
  deps: ExecuteDeps,
  signal: AbortSignal,
): Promise<SiteOutcome> {
  const { clock = systemClock } = deps;
  const { drains, waitsForDrain } = drainRules(run, deps);
  for (const change of run.changes) deps.onStep(stepOf(change, 'queued'));

  let failures: SiteOutcome['failures'] = [];
  let unobserved: Error | null = null;
  const done: Change[] = [];
  // A signal of this site alone: Node would compare a new listener of the common signal with those of all sites.
  const own = AbortSignal.any([signal]);
  const ended = AbortSignal.any([own, run.superseded]);
  const isStopped = () =>
    failures.some(({ change }) => !isOptional(run, change, deps.appliers)) ||
    unobserved !== null ||
    ended.aborted;
  let { dnsRemovedAt } = run;
  let isDrained = false;
  const startDrain = () => {
    const now = clock.date();
    dnsRemovedAt = now;
    isDrained = false;
    deps.onDnsRemoved(now);
    return now;
  };
  for (const { target, changes } of stagesOf(run.changes, deps.appliers)) {
    unobserved ??= run.unobserved.get(target) ?? null;
    if (changes.length === 0) continue;
    if (waitsForDrain(target) && !isDrained && !isStopped()) {
      const leftMs = drainLeftMs(dnsRemovedAt ?? startDrain(), deps.drainSeconds, clock);
      if (leftMs > 0) await clock.sleep(leftMs, { signal: ended });
      // Once per drain: otherwise, if the wall clock was set back, each target would wait for a whole drain.
      isDrained = true;
    }
    if (isStopped()) {
      for (const change of changes) deps.onStep(stepOf(change, 'skipped'));
      continue;
    }
    const signals = { signal: own, superseded: run.superseded };
    const results = await Promise.all(changes.map((change) => applyOne(change, { ...deps, clock }, signals)));
    failures = [...failures, ...results.filter((result) => typeof result !== 'string')];
    done.push(...changes.filter((_, index) => results[index] === 'done'));
    // The drain starts with the delete of the last record.
    if (drains(target) && failures.length === 0) startDrain();
  }
  const required = failures.filter(({ change }) => !isOptional(run, change, deps.appliers));
  return {
    done,
    failures,
    unobserved,
    terminal: required.some(({ error }) => error instanceof TerminalError),
  };
}

/** True for a failed delete that must not fail the removal of the site (see `Traits.mayOutliveSite`). */
export function isOptional(
  run: Pick<SiteRun, 'removal'>,
  { target, op }: Change,
  appliers: ExecuteDeps['appliers'],
): boolean {
  return run.removal && op === 'delete' && appliers.get(target)?.mayOutliveSite === true;
}

/**
 * On removal of a site, visitors drain after the targets by which they find it are deleted. Targets that come earlier
 * in the order of creation are deleted only after the drain.
 */
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

function stagesOf(
  changes: readonly Change[],
  appliers: ExecuteDeps['appliers'],
): { target: Target; changes: Change[] }[] {
  const targets = [...new Set([...appliers.keys(), ...changes.map(({ target }) => target)])];
  const up = changes.filter(({ op }) => op !== 'delete');
  const down = changes.filter(({ op }) => op === 'delete');
  const of = (some: Change[]) => (target: Target) => ({
    target,
    changes: some.filter((change) => change.target === target),
  });
  return [...targets.map(of(up)), ...targets.toReversed().map(of(down))];
}

/** At most one whole drain, even if the wall clock was set back. */
function drainLeftMs(since: Date, seconds: number, clock: Clock): number {
  return Math.min(since.getTime() + seconds * 1000 - clock.date().getTime(), seconds * 1000);
}

async function applyOne(
  change: Change,
  deps: ExecuteDeps & { readonly clock: Clock },
  { signal, superseded }: { readonly signal: AbortSignal; readonly superseded: AbortSignal },
): Promise<{ change: Change; error: Error } | 'done' | 'superseded'> {
  const { clock } = deps;
  const began = clock.now();
  const startedAt = clock.date().toISOString();
  const times = () => ({
    ms: Math.round(clock.now() - began),
    startedAt,
    endedAt: clock.date().toISOString(),
  });
  deps.onStep({ ...stepOf(change, 'running'), startedAt });
  try {
    const applier = deps.appliers.get(change.target);
    if (applier === undefined) throw new TerminalError(`this host has no applier for ${change.target}`);
    const progress = (message: string) => deps.onProgress?.(change, message);
    await applier.apply(change, signal, { progress, superseded });
    deps.onStep({ ...stepOf(change, 'succeeded'), ...times() });
    return 'done';
  } catch (cause) {
    if (superseded.aborted && cause === superseded.reason) {
      deps.onStep({ ...stepOf(change, 'skipped'), ...times() });
      return 'superseded';
    }
    const error = cause instanceof Error ? cause : new Error(String(cause));
    deps.onStep({ ...stepOf(change, 'failed'), error: error.message, ...times() });
    return { change, error };
  }
}

function stepOf({ target, key, op }: Change, status: Step['status']): Step {
  return { target, key, op, status, ms: 0 };
}
