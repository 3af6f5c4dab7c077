import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { limit } from '../base/limit.ts';
import { PROJECTS } from './projects.ts';
import { allRequired, componentsOf, PROBES_VARIABLE, probeComponents } from './support/components.ts';
import { type FileOutcome, progress, renderReport, sum } from './support/report.ts';
import { canMakeNetworks, filesOf, LOGS, runProject } from './support/runner/project-run.ts';

/** With more failed files than this, the cause is not a busy machine: none gets a second try. */
const MOST_RETRIED = 8;
/** Between two lines of progress, where the output is no terminal. */
const PROGRESS_MS = 20_000;

/**
 * `npm test [-- <part of a path> ...]`: the tests that need no component, or those of the given files.
 * `npm run test:all [-- <part of a path> ...]`: every test that this machine can run.
 *
 * Vitest selects and runs the files (`projects.ts`, `vitest.config.ts`). What it can't do is done here: projects run
 * beside each other while the files of each run one after another, some in a network namespace of their own; failed
 * files run again at the end (`TAGYARD_SECOND_TRY=1`, at most eight, and only those that still fail count; what passes
 * then needs an idle machine and is named, to be corrected); the end of the output says what passed, what was left out
 * and why. Exit code 1 where a test failed, none ran, an error was thrown outside the tests, or
 * (`TAGYARD_REQUIRE_ALL=1`) a needed component is missing.
 */
const started = Date.now();
const { values, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: { all: { type: 'boolean', default: false } },
});
const selected = Object.entries(PROJECTS)
  .filter(([, { later }]) => later === null || values.all || filters.length > 0)
  .map(([name, project]) => ({ name, project, files: filesOf(name, filters) }))
  .filter(({ files }) => files.length > 0);

const needed = selected.flatMap(({ files }) => files.map((path) => [path, componentsIn(path)] as const));
const probes = probeComponents(new Set(needed.flatMap(([, components]) => [...components])));
process.env[PROBES_VARIABLE] = JSON.stringify(probes);
const ownNetworks = selected.some(({ project }) => project.ownNetwork) && canMakeNetworks();

const outcomes = new Map<string, FileOutcome & { readonly project: string }>();
const show = progress(selected, PROGRESS_MS);
const stray = await runAll();
if (process.env.TAGYARD_SECOND_TRY === '1') await tryAgain();
show.end();

const absent = Object.entries(probes).flatMap(([component, reason]) =>
  reason === null ? [] : [{ component, reason }],
);
const counts = sum([...outcomes.values()]);
const complaints = [
  ...(counts.passed + counts.failed === 0
    ? ['No test ran: no file matches, or every suite was left out.']
    : []),
  ...stray.map((error) => `Thrown outside the tests: ${error}`),
  ...(allRequired()
    ? absent.map(({ component, reason }) => `TAGYARD_REQUIRE_ALL=1, but ${component}: ${reason}`)
    : []),
];
for (const complaint of complaints) console.error(complaint);
console.log(
  renderReport({
    outcomes: [...outcomes.values()],
    leftOut: allRequired()
      ? []
      : absent.map(({ component, reason }) => ({
          component,
          reason,
          files: needed.filter(([, components]) => components.some((one) => one === component)).length,
        })),
    later: values.all || filters.length > 0 ? [] : laterFiles(),
    seconds: (Date.now() - started) / 1000,
    logs: LOGS,
  }),
);
process.exit(complaints.length > 0 || counts.failed > 0 ? 1 : 0);

/**
 * First the projects whose files run beside each other; then the others, one more at once than there are cores: a
 * project computes for half to two thirds of its time, and with still more, tests wait for a core until they time out.
 */
async function runAll(): Promise<string[]> {
  const cores = availableParallelism();
  const beside = limit(cores + 1);
  const groups = [
    ...selected.filter(({ project }) => project.later === null).map((one) => [one]),
    selected.filter(({ project }) => project.later !== null && !isAlone(project)),
    ...selected.filter(({ project }) => isAlone(project)).map((one) => [one]),
  ];
  const errors: string[] = [];
  for (const group of groups) {
    const runs = group.map(({ name, project }) =>
      beside(() => run(name, { filters, workers: project.later === null ? cores + 1 : 1 })),
    );
    errors.push(...(await Promise.all(runs)).flat());
  }
  return errors;
}

/** Without networks of their own, what needs one must not run beside anything that changes the machine's. */
function isAlone({ alone, ownNetwork }: (typeof PROJECTS)[string]): boolean {
  return alone === true || (ownNetwork === true && !ownNetworks);
}

function run(name: string, { filters, workers }: { filters: readonly string[]; workers: number }) {
  const inOwnNetwork = PROJECTS[name]?.ownNetwork === true && ownNetworks;
  const ended = (outcome: FileOutcome) => {
    const earlier = outcomes.get(outcome.path);
    const isSecond = earlier !== undefined && earlier.failed > 0 && outcome.failed === 0;
    outcomes.set(outcome.path, {
      ...outcome,
      project: name,
      ...(isSecond && { retried: earlier.failures }),
    });
    show.ended(name, outcome);
  };
  show.began(name);
  return runProject(name, { filters, workers, inOwnNetwork, ended });
}

/** The failed files, one after another with nothing beside them. */
async function tryAgain(): Promise<void> {
  const failed = [...outcomes.values()].filter((outcome) => outcome.failed > 0);
  if (failed.length > MOST_RETRIED) return;
  for (const { path, project } of failed)
    stray.push(...(await run(project, { filters: [path], workers: 1 })));
}

function componentsIn(path: string) {
  return [...componentsOf(readFileSync(path, 'utf8'))];
}

/** What `npm test` leaves to `npm run test:all`: the number of files by the reason. */
function laterFiles(): { readonly reason: string; readonly files: number }[] {
  const reasons = Object.entries(PROJECTS).flatMap(([name, { later }]) =>
    later === null ? [] : [{ reason: later, files: filesOf(name).length }],
  );
  return [...Map.groupBy(reasons, ({ reason }) => reason)].map(([reason, all]) => ({
    reason,
    files: all.reduce((total, { files }) => total + files, 0),
  }));
}
