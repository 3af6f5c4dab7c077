import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Cut, killOnce, type Outcome, reference, table } from '../support/faults/kill.ts';
import { lifeOf } from '../support/faults/operations.ts';
import { type Mode, type Stage, stage } from '../support/faults/stage.ts';
import type { Moment } from '../support/gitops/gate.ts';

/** The state file is written often and always in the same way: the first writes of a step represent all of them. */
const STATE_WRITES = 2;
const MINUTE = 60_000;
/** Each moment has a stage of its own. Both stages run at once, because each spends half of its time waiting. */
const MOMENTS: readonly Moment[] = ['before', 'after'];

interface StageResult {
  readonly outcomes: readonly Outcome[];
  /** The number of effects, by step of the sites' life. */
  readonly effects: ReadonlyMap<string, number>;
}

/** Does the same work on both stages, each with foreign resources. */
async function onBothStages(
  work: (on: Stage, moment: Moment) => Promise<StageResult>,
  mode: Mode,
): Promise<StageResult[]> {
  const results = await Promise.allSettled(
    MOMENTS.map(async (moment) => {
      const on = await stage({ mode });
      try {
        await on.plantForeign();
        return await work(on, moment);
      } finally {
        await on.close();
      }
    }),
  );
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

describe('a daemon that is killed with SIGKILL', () => {
  test.each<[Mode, at: string, steps: readonly string[] | null, of: RegExp]>([
    ['auto', 'every effect', null, /./],
    // The modes differ in routes and records only, and no other step writes these.
    ['site', 'every route and record', ['create', 'remove'], /zones/],
  ])(
    'reaches the same state of three sites as without a kill: mode %s, kills before and after %s',
    {
      timeout: 30 * MINUTE,
    },
    async (mode, _at, only, of) => {
      const sites = ['acme', 'beta', 'core'];
      const results = await onBothStages(async (on, moment) => {
        const life = lifeOf(sites, on.manifest).filter(({ name }) => only?.includes(name) ?? true);
        const { steps, effects } = await reference(on, life, of);
        const outcomes: Outcome[] = [];
        const done = new Set<string>();
        let daemon = await on.start();
        for (let round = 0; done.size < life.length; round += 1) {
          for (const asked of life) {
            const cut = { ...cutAt(round, moment), of };
            const result = await killOnce(on, daemon, asked, cut, sites, steps);
            daemon = result.daemon;
            if (result.outcome !== null) outcomes.push(result.outcome);
            else if (cut.kind === 'world') done.add(asked.name);
          }
        }
        await daemon.kill();
        return { outcomes, effects };
      }, mode);
      const outcomes = results.flatMap((result) => result.outcomes);
      console.log(table(outcomes));
      for (const name of results[0]?.effects.keys() ?? []) {
        const cuts = outcomes.filter(({ asked, cut }) => asked === name && cut.kind === 'world');
        const least = Math.min(...results.map(({ effects }) => effects.get(name) ?? 0));
        // Batches differ a little from run to run, so this is a lower bound.
        expect(cuts.length, name).toBeGreaterThanOrEqual(Math.max(1, least));
      }
    },
  );

  test('at one effect of each step of a hundred sites reaches the same state as without the kill', {
    timeout: 20 * MINUTE,
  }, async () => {
    const sites = Array.from({ length: 100 }, (_, number) => `site-${number}`);
    const results = await onBothStages(async (on, moment) => {
      const life = lifeOf(sites, on.manifest);
      const { steps, effects } = await reference(on, life);
      const outcomes: Outcome[] = [];
      let daemon = await on.start();
      for (const [step, asked] of life.entries()) {
        const most = Math.max(1, Math.floor((effects.get(asked.name) ?? 1) * 0.9));
        const seed = 7 * MOMENTS.indexOf(moment) + step;
        const [index = 1] = fc.sample(fc.integer({ min: 1, max: most }), { seed, numRuns: 1 });
        const result = await killOnce(on, daemon, asked, { kind: 'world', index, moment }, sites, steps);
        daemon = result.daemon;
        if (result.outcome !== null) outcomes.push(result.outcome);
      }
      await daemon.kill();
      return { outcomes, effects };
    }, 'auto');
    const outcomes = results.flatMap((result) => result.outcomes);
    console.log(table(outcomes));
    expect(outcomes.length).toBeGreaterThanOrEqual(8);
  });
});

/** Cuts first at the commit, then at the first writes of the state file, then at one effect after the other. */
function cutAt(round: number, moment: Moment): Cut {
  if (round === 0) return { kind: 'commit', index: 1, moment };
  if (round <= STATE_WRITES) return { kind: 'state', index: round, moment };
  return { kind: 'world', index: round - STATE_WRITES, moment };
}
