import { parseArgs } from 'node:util';
import { z } from 'zod';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { CORPUS } from './corpus.ts';
import { describeFailure, fuzz, replay } from './fuzz.ts';
import type { Step } from './steps.ts';

// Every process that this one starts uses the cache, too.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

/**
 * `npm run fuzz [-- --seed N] [--corpus] [--seconds S] [--shrink-seconds S]`: fuzzes an instance. With `--steps '<JSON>'`,
 * it only repeats the steps that a failure has printed. Exit code 1 where an invariant does not hold.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seconds: { type: 'string', default: '600' },
    corpus: { type: 'boolean', default: false },
    'shrink-seconds': { type: 'string', default: '900' },
    steps: { type: 'string' },
  },
});

if (values.steps === undefined) {
  const seed = z.coerce
    .number()
    .int()
    .parse(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  const { count, failure } = await fuzz({
    seed,
    corpus: values.corpus ? CORPUS : [],
    seconds: z.coerce.number().positive().parse(values.seconds),
    shrinkSeconds: z.coerce.number().min(0).parse(values['shrink-seconds']),
    log: (line) => console.log(line),
  });
  console.log(failure === null ? `seed ${seed}: ${count} steps passed` : describeFailure(seed, failure));
  process.exitCode = failure === null ? 0 : 1;
} else {
  const violation = await replay(JSON.parse(values.steps) as Step[]); // as a failure printed them
  console.log(violation === null ? 'the steps pass' : violation.message);
  process.exitCode = violation === null ? 0 : 1;
}
