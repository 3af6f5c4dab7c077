import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { limit } from '../gitops/base/limit.ts';
import { ALONE, POOLS, type Pool } from './suites.ts';
import {
  allRequired,
  componentsOf,
  PROBES_VARIABLE,
  type Probes,
  probeComponents,
} from './support/components.ts';
import { type FileOutcome, renderReport, sum } from './support/report.ts';
import { hasSelected, openPool, type PoolOutcome, servedPool } from './support/runner/pool-run.ts';

/** With more failed files than this, the cause is not a busy machine: none gets a second try. */
const MOST_RETRIED = 8;

/**
 * `npm test [-- <part of a path> ...]`: every test that this machine can run. The pools of `suites.ts` start in their
 * order, at most one more at once than there are cores; those that must be alone run after them. The last lines say how
 * long each suite took, what failed and what was left out. Exit code 1 where a test failed, none ran, an error was
 * thrown outside the tests, or (`TAGYARD_REQUIRE_ALL=1`) a needed component is missing.
 *
 * With `TAGYARD_SECOND_TRY=1`, the failed files, if at most eight, run again at the end, those of one pool one by one.
 * What passes then is reported as passed at the second try only: a test that needs an idle machine, to be corrected.
 */
const started = Date.now();
const filters = process.argv.slice(2);
const served = servedPool();
const all = (Object.keys(POOLS) as Pool[]).filter((pool) => served === null || pool === served.pool); // keys: string[]
const runs = await Promise.all(
  all.filter((pool) => hasSelected(pool, filters)).map((pool) => openPool(pool, filters)),
);
const probes = served === null ? probe(runs.flatMap(({ files }) => files)) : {};
if (served === null) process.env[PROBES_VARIABLE] = JSON.stringify(probes);

// A pool computes for half to two thirds of its time, so one pool more than there are cores keeps the cores busy. With still
// more pools, tests wait for a core until they time out.
const beside = limit(availableParallelism() + 1);
const network = limit(1);
// A limiter begins a run some microtasks after its call. Each pool first passes another limiter, so that all reach
// `beside` in their order.
const others = limit(Number.POSITIVE_INFINITY);
await Promise.all(
  runs
    .filter(({ pool }) => !ALONE.has(pool))
    .map((one) => (one.needsQuietNetwork ? network : others)(() => beside(() => one.run()))),
);
for (const one of runs.filter(({ pool }) => ALONE.has(pool))) await one.run();
const known = runs.map((one) => one.outcome());
const first = known.flatMap(({ outcomes }) => outcomes);
const stray = known.reduce((total, one) => total + one.stray, 0);
const hung = (await Promise.all(runs.map((one) => one.close()))).filter((one) => one !== null);
if (served !== null) {
  await writeFile(served.file, JSON.stringify({ outcomes: first, stray, hung } satisfies PoolOutcome));
  process.exit(0);
}
const second = process.env.TAGYARD_SECOND_TRY === '1' ? await tryAgain() : new Map<string, FileOutcome>();
const outcomes = first.map((outcome) => second.get(outcome.path) ?? outcome);

const absent = Object.entries(probes).filter(([, reason]) => reason !== null);
const counts = sum(outcomes);
const complaints = [
  ...(counts.passed + counts.failed === 0
    ? ['No test ran: no file matches, or every suite was left out.']
    : []),
  ...(stray > 0 ? [`${stray} errors were thrown outside the tests; see above.`] : []),
  ...(allRequired() ? absent.map(([name, reason]) => `TAGYARD_REQUIRE_ALL=1, but ${name}: ${reason}`) : []),
];
// A worker that doesn't end is reported, but the run doesn't fail: all tests have ended, and this process ends it.
for (const complaint of [...hung, ...complaints]) console.error(complaint);
console.log(renderReport(outcomes, probes, (Date.now() - started) / 1000));
// Explicit, so that a handle which a test left open can't keep a finished run from ending.
process.exit(complaints.length > 0 || counts.failed > 0 ? 1 : 0);

/** Probes only what the selected files need. */
function probe(files: readonly string[]): Probes {
  return probeComponents(new Set(files.flatMap((file) => [...componentsOf(readFileSync(file, 'utf8'))])));
}

/** Repeats the files that failed, those of one pool one by one. Returns the second outcomes by path. */
async function tryAgain(): Promise<Map<string, FileOutcome>> {
  const failed = runs.flatMap((one) =>
    one
      .outcome()
      .outcomes.filter((outcome) => outcome.failed > 0)
      .map((outcome) => ({ ...outcome, pool: one.pool })),
  );
  if (failed.length > MOST_RETRIED) return new Map();
  const second = new Map<string, FileOutcome>();
  const each = limit(availableParallelism());
  const pools = [...Map.groupBy(failed, ({ pool }) => pool)];
  await Promise.all(
    pools.map(([pool, files]) =>
      each(async () => {
        for (const { path, failures } of files) {
          const again = await openPool(pool, [path]);
          await again.run();
          const outcome = again.outcome().outcomes.find((one) => one.path === path);
          if (outcome) second.set(path, outcome.failed > 0 ? outcome : { ...outcome, retried: failures });
          await again.close();
        }
      }),
    ),
  );
  return second;
}
