import { expect, test } from 'vitest';
import { describeFailure, fuzz } from './fuzz.ts';

const seed = Number(process.env.TAGYARD_FUZZ_SEED || 1);
const log: string[] = [];

test(`an instance keeps its invariants for a minute of hostile steps (TAGYARD_FUZZ_SEED=${seed})`, {
  // The minute, two starts, the steps' last settling, and the search for the fewest steps.
  timeout: 900_000,
}, async () => {
  const { count, failure } = await fuzz({
    seed,
    seconds: 60,
    shrinkSeconds: 300,
    log: (line) => log.push(line),
  });
  expect(failure === null ? '' : `${log.join('\n')}\n${describeFailure(seed, failure)}`).toBe('');
  expect(count).toBeGreaterThan(0);
});
