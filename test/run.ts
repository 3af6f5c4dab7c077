import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { createVitest, type Vitest } from 'vitest/node';
import { limit } from '../gitops/base/limit.ts';
import { ALONE, filesOf, POOLS, type Pool } from './suites.ts';
import {
  allRequired,
  componentsOf,
  PROBES_VARIABLE,
  type Probes,
  probeComponents,
} from './support/components.ts';
import { type FileOutcome, readModule, renderReport, sum } from './support/report.ts';

const CLOSE_DEADLINE_MS = 30_000;
/** With more failed files than this, the cause is not a busy machine: none gets a second try. */
const MOST_RETRIED = 4;

/** A pool with the files of it that the filters select. */
interface Selection {
  readonly pool: Pool;
  readonly vitest: Vitest;
  readonly files: readonly string[];
}

/**
 * `npm test [-- <part of a path> ...]`: every test that this machine can run. The pools of `suites.ts` run beside each
 * other, one more than there are cores, the longest first; those that must be alone run after them. The last lines say how
 * long each suite took, what failed and what was left out. Exit code 1 where a test failed, none ran, or
 * (`TAGYARD_REQUIRE_ALL=1`) a needed component is missing.
 *
 * With `TAGYARD_SECOND_TRY=1`, up to four files that failed run once more at the end, alone. What passes then is
 * reported as passed at the second try only: a test that needs an idle machine, to be corrected.
 */
const started = Date.now();
const filters = process.argv.slice(2);
const pools = (Object.keys(POOLS) as Pool[]).filter(hasSelected); // keys forgets the type
const selections = await Promise.all(pools.map((pool) => select(pool, filters)));
const probes = probe(selections.flatMap(({ files }) => files));
process.env[PROBES_VARIABLE] = JSON.stringify(probes);

// A pool waits for a third of its time, so one more than there are cores keeps them busy. With still more of them, tests
// wait for a core until they time out.
const beside = limit(availableParallelism() + 1);
const run = async ({ vitest, files }: Selection) => files.length > 0 && (await vitest.start(filters));
await Promise.all(
  selections.filter(({ pool }) => !ALONE.has(pool)).map((one) => beside(async () => await run(one))),
);
for (const one of selections.filter(({ pool }) => ALONE.has(pool))) await run(one);
const first = selections.flatMap(outcomesOf);
const stray = selections.flatMap(({ vitest }) => vitest.state.getUnhandledErrors()).length;
const hung = await Promise.all(selections.map(close));
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
// A worker that doesn't end is reported, and fails nothing: the tests have had their verdict, and this process ends it.
for (const complaint of [...hung.filter((one) => one !== null), ...complaints]) console.error(complaint);
console.log(renderReport(outcomes, probes, (Date.now() - started) / 1000));
// Explicit, so that a handle which a test left open can't keep a finished run from ending.
process.exit(complaints.length > 0 || counts.failed > 0 ? 1 : 0);

/** Whether a filter selects a file of the pool. The start of a runner for nothing takes a second. */
function hasSelected(pool: Pool): boolean {
  // As the runner takes them: with a line's number, or as the path from the root of the machine.
  const parts = filters.map((filter) => relative('', filter.replace(/:\d+$/, '')));
  const files = POOLS[pool].flatMap(filesOf);
  return parts.length === 0 || files.some((file) => parts.some((part) => file.includes(part)));
}

async function select(pool: Pool, filters: readonly string[]): Promise<Selection> {
  const vitest = await createVitest('test', {
    project: [...POOLS[pool]],
    run: true,
    watch: false,
    // One file at a time in each pool: two cores serve all of them.
    maxWorkers: 1,
    // The live summary of one pool would overwrite that of another.
    reporters: [['default', { summary: false }]],
    // The pools would write the same file.
    cache: false,
  });
  const specifications = await vitest.globTestSpecifications([...filters]);
  return { pool, vitest, files: specifications.map(({ moduleId }) => moduleId) };
}

/** Probes only what the selected files need. */
function probe(files: readonly string[]): Probes {
  return probeComponents(new Set(files.flatMap((file) => [...componentsOf(readFileSync(file, 'utf8'))])));
}

function outcomesOf({ vitest }: Selection): FileOutcome[] {
  return vitest.state.getTestModules().map(readModule);
}

/** Runs the files that failed once more, one by one. Returns the second outcomes by path. */
async function tryAgain(): Promise<Map<string, FileOutcome>> {
  const failed = selections.flatMap((selection) =>
    outcomesOf(selection)
      .filter((outcome) => outcome.failed > 0)
      .map((outcome) => ({ ...outcome, pool: selection.pool })),
  );
  if (failed.length > MOST_RETRIED) return new Map();
  const second = new Map<string, FileOutcome>();
  for (const { pool, path, failures } of failed) {
    const selection = await select(pool, [path]);
    await selection.vitest.start([path]);
    const outcome = outcomesOf(selection).find((one) => one.path === path);
    if (outcome) second.set(path, outcome.failed > 0 ? outcome : { ...outcome, retried: failures });
    await close(selection);
  }
  return second;
}

/** Closes the workers. Returns a message if one doesn't end, without waiting longer for it; `null`: all have ended. */
async function close({ pool, vitest }: Selection): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve(`The test workers of ${pool} do not end.`), CLOSE_DEADLINE_MS);
  const closed = vitest.close().then(
    () => null,
    (error: unknown) => String(error),
  );
  return await Promise.race([closed, promise]).finally(() => clearTimeout(timer));
}
