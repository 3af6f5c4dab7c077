import { expect, onTestFailed, test } from 'vitest';
import { CORPUS } from './corpus.ts';
import { describeFailure, fuzz } from './fuzz.ts';

/** The seed of the random steps, which come after the corpus. Default: a new one for each run. */
const seed = Number(process.env.TAGYARD_FUZZ_SEED || Math.floor(Math.random() * 2 ** 31));
const log: string[] = [];

test('an instance keeps its invariants for the steps of the corpus, and for random ones until the minute is over', {
  // Enough for the minute, two starts, the last wait for sites to settle, and a search for the fewest steps that fail.
  timeout: 900_000,
}, async () => {
  console.log(`TAGYARD_FUZZ_SEED=${seed}`);
  // Also if an instance doesn't start.
  onTestFailed(() => console.log(log.join('\n')));
  const { count, failure } = await fuzz({
    seed,
    corpus: CORPUS,
    seconds: 60,
    shrinkSeconds: 300,
    log: (line) => log.push(line),
  });
  expect(failure === null ? '' : describeFailure(seed, failure)).toBe('');
  expect(count).toBeGreaterThanOrEqual(CORPUS.length);
});
