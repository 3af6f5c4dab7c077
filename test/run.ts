import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createVitest, type Vitest } from 'vitest/node';
import { limit } from '../gitops/base/limit.ts';
import { ALONE, POOLS, type Pool } from './suites.ts';
import {
  allRequired,
  componentsOf,
  PROBES_VARIABLE,
  type Probes,
  probeComponents,
} from './support/components.ts';
import { readModule, renderReport, sum } from './support/report.ts';

const CLOSE_DEADLINE_MS = 30_000;

/** A pool with the files of it that the filters select. */
interface Selection {
  readonly pool: Pool;
  readonly vitest: Vitest;
  readonly files: readonly string[];
}

/**
 * `npm test [-- <part of a path> ...]`: every test that this machine can run. The pools of `suites.ts` run beside each
 * other, as many as there are cores, the longest first; those that must be alone run after them. The last lines say how
 * long each suite took and what was left out. Exit code 1 where a test failed, none ran, or (`TAGYARD_REQUIRE_ALL=1`) a
 * needed component is missing.
 */
const started = Date.now();
const filters = process.argv.slice(2);
const selections = await Promise.all(Object.keys(POOLS).map((pool) => select(pool as Pool))); // keys forgets the type
const probes = probe(selections.flatMap(({ files }) => files));
process.env[PROBES_VARIABLE] = JSON.stringify(probes);

// As many pools at once as there are cores: with more of them, tests wait for a core until they time out.
const perCore = limit(availableParallelism());
const run = async ({ vitest, files }: Selection) => files.length > 0 && (await vitest.start(filters));
await Promise.all(
  selections.filter(({ pool }) => !ALONE.has(pool)).map((one) => perCore(async () => await run(one))),
);
for (const one of selections.filter(({ pool }) => ALONE.has(pool))) await run(one);
const outcomes = selections.flatMap(({ vitest }) => vitest.state.getTestModules().map(readModule));
const stray = selections.flatMap(({ vitest }) => vitest.state.getUnhandledErrors()).length;
const hung = await Promise.all(selections.map(({ vitest }) => close(vitest)));

const absent = Object.entries(probes).filter(([, reason]) => reason !== null);
const counts = sum(outcomes);
const complaints = [
  ...(counts.passed + counts.failed === 0
    ? ['No test ran: no file matches, or every suite was left out.']
    : []),
  ...hung.filter((complaint) => complaint !== null),
  ...(stray > 0 ? [`${stray} errors were thrown outside the tests; see above.`] : []),
  ...(allRequired() ? absent.map(([name, reason]) => `TAGYARD_REQUIRE_ALL=1, but ${name}: ${reason}`) : []),
];
for (const complaint of complaints) console.error(complaint);
console.log(renderReport(outcomes, probes, (Date.now() - started) / 1000));
// Explicit, so that a handle which a test left open can't keep a finished run from ending.
process.exit(complaints.length > 0 || counts.failed > 0 ? 1 : Number(process.exitCode ?? 0));

async function select(pool: Pool): Promise<Selection> {
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
  const specifications = await vitest.globTestSpecifications(filters);
  return { pool, vitest, files: specifications.map(({ moduleId }) => moduleId) };
}

/** Probes only what the selected files need. */
function probe(files: readonly string[]): Probes {
  return probeComponents(new Set(files.flatMap((file) => [...componentsOf(readFileSync(file, 'utf8'))])));
}

/** Answers a complaint where a worker doesn't end: it is a fault of a test, and nothing to wait for. */
async function close(runner: Vitest): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve('The test workers do not end.'), CLOSE_DEADLINE_MS);
  const closed = runner.close().then(
    () => null,
    (error: unknown) => String(error),
  );
  return await Promise.race([closed, promise]).finally(() => clearTimeout(timer));
}
