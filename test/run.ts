import { startVitest, type Vitest } from 'vitest/node';
import { allRequired, PROBES_VARIABLE, probeComponents } from './support/components.ts';
import { readModule, renderReport, sum } from './support/report.ts';

const CLOSE_DEADLINE_MS = 30_000;

/**
 * `npm test [-- <file filters>]`: everything that this machine can run, and in the last lines what took how long and
 * what was left out. Exit code 1 where a test failed, none ran, or (`TAGYARD_REQUIRE_ALL=1`) a component is missing.
 */
const started = Date.now();
const probes = probeComponents();
process.env[PROBES_VARIABLE] = JSON.stringify(probes);

const vitest = await startVitest(process.argv.slice(2), { run: true, watch: false, reporters: ['default'] });
const outcomes = vitest.state.getTestModules().map(readModule);
const stray = vitest.state.getUnhandledErrors().length;
const hung = await close(vitest).then(
  () => [],
  (error: unknown) => [String(error)],
);

const absent = Object.entries(probes).filter(([, reason]) => reason !== null);
const counts = sum(outcomes);
const complaints = [
  ...(counts.passed + counts.failed === 0 ? ['No test ran: nothing matches, or all were left out.'] : []),
  ...hung,
  ...(stray > 0 ? [`${stray} errors escaped the tests; see above.`] : []),
  ...(allRequired() ? absent.map(([name, reason]) => `TAGYARD_REQUIRE_ALL=1, but ${name}: ${reason}`) : []),
];
for (const complaint of complaints) console.error(complaint);
console.log(renderReport(outcomes, probes, (Date.now() - started) / 1000));
// Explicit, so that a handle which some test left open can't keep a finished run from ending.
process.exit(complaints.length > 0 || counts.failed > 0 ? 1 : Number(process.exitCode ?? 0));

/** A worker that doesn't end is a fault of the tests, and no reason to wait for ever. */
async function close(runner: Vitest): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('The test workers do not end.')), CLOSE_DEADLINE_MS);
  await Promise.race([runner.close(), promise]).finally(() => clearTimeout(timer));
}
