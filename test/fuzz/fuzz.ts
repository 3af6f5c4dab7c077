import { act } from './actions.ts';
import { Checks } from './checks.ts';
import { shrink } from './shrink.ts';
import { type Step, stepsOf } from './steps.ts';
import { Violation } from './violation.ts';
import { startWorld } from './world.ts';

interface FuzzOptions {
  readonly seed: number;
  /** Steps that come before those of the seed, however long they take. */
  readonly corpus: readonly Step[];
  /** For how long steps are made, including those of the corpus. */
  readonly seconds: number;
  /** For how long a failure is reduced to fewer steps. */
  readonly shrinkSeconds: number;
  log(line: string): void;
}

interface Failure {
  readonly violation: Violation;
  /** The fewest steps found that break the same invariant on a new instance. */
  readonly steps: readonly Step[];
}

interface Outcome {
  /** How many steps were made before a failure. */
  readonly count: number;
  readonly failure: Failure | null;
}

/** More steps than an instance makes in a day. */
const MAX_STEPS = 100_000;

/**
 * Makes the steps of the corpus and then those of `seed` on a whole instance until the time has passed, and checks the
 * invariants after each. A failure is reduced to fewer steps on new instances.
 */
export async function fuzz({ seed, corpus, seconds, shrinkSeconds, log }: FuzzOptions): Promise<Outcome> {
  log(`fuzz: ${corpus.length} steps of the corpus, then seed ${seed}, ${seconds} s`);
  let first: { violation: Violation; steps: readonly Step[] } | null = null;
  let count = 0;
  {
    await using world = await startWorld();
    const checks = new Checks(world);
    await checks.begin();
    const end = Date.now() + seconds * 1000;
    const steps = [...corpus, ...stepsOf(seed, Math.min(MAX_STEPS, Math.ceil(seconds) * 20))];
    for (const step of steps) {
      if (count >= corpus.length && Date.now() >= end) break;
      const violation = await violationOf(async () => {
        await checks.after(step, await act(world, step));
      });
      const outcome = violation === null ? `${checks.ready} ready` : 'FAILS  ';
      log(`${String(count + 1).padStart(4)} ${outcome} ${JSON.stringify(step)}`);
      if (violation !== null) {
        log(violation.message);
        first = { violation, steps: steps.slice(0, count + 1) };
        break;
      }
      count += 1;
    }
  }
  if (first === null) return { count, failure: null };
  const { invariant } = first.violation;
  const deadline = Date.now() + shrinkSeconds * 1000;
  const smaller = await shrink(first.steps, async (candidate) => {
    if (Date.now() >= deadline) return false;
    try {
      const found = await replay(candidate);
      log(`shrink: ${candidate.length} steps ${found?.invariant === invariant ? '' : 'don’t '}fail likewise`);
      return found?.invariant === invariant;
    } catch (error) {
      // The first failure must not be lost: other selections may still run.
      log(`shrink: ${candidate.length} steps can’t be repeated: ${String(error)}`);
      return false;
    }
  });
  return { count, failure: { violation: first.violation, steps: smaller } };
}

/** Makes these steps on a new instance; returns what broke. */
export async function replay(steps: readonly Step[]): Promise<Violation | null> {
  await using world = await startWorld();
  const checks = new Checks(world);
  await checks.begin();
  return await violationOf(async () => {
    for (const step of steps) await checks.after(step, await act(world, step));
  });
}

async function violationOf(work: () => Promise<void>): Promise<Violation | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (error instanceof Violation) return error;
    throw error;
  }
}

/** What a failure prints: enough to run it again. */
export function describeFailure(seed: number, { violation, steps }: Failure): string {
  return [
    `seed ${seed}: ${violation.message}`,
    `fewest steps found (${steps.length}); run them again with npm run fuzz -- --steps '<this list>':`,
    JSON.stringify(steps),
  ].join('\n');
}
