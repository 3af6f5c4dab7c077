import { stripVTControlCharacters } from 'node:util';
import type { TestModule } from 'vitest/node';
import { SUITES, suiteOf } from '../suites.ts';
import { allRequired, type Probes } from './components.ts';

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The outcome of one test file; `path` is relative to the tree's root. */
export interface FileOutcome extends Counts {
  readonly path: string;
  readonly seconds: number;
  /** The first line of each error, after the test's full name unless the file itself failed. */
  readonly failures: readonly string[];
  /** The failures of the first try, where a second one passed (`TAGYARD_SECOND_TRY`). */
  readonly retried?: readonly string[];
}

/**
 * Reads one file's outcome from the runner. A file that fails outside its tests (on import, in a hook) has no failed
 * test, so it counts as one failure.
 */
export function readModule(module: TestModule): FileOutcome {
  const count = (state: 'passed' | 'failed' | 'skipped') => [...module.children.allTests(state)].length;
  const failed = count('failed');
  const { collectDuration, setupDuration, duration } = module.diagnostic();
  return {
    path: module.relativeModuleId,
    passed: count('passed'),
    failed: failed === 0 && !module.ok() ? 1 : failed,
    skipped: count('skipped'),
    seconds: (collectDuration + setupDuration + duration) / 1000,
    failures: [
      ...module.errors().map(({ message }) => firstLine(message)),
      ...[...module.children.allTests('failed')].map(
        (test) => `${test.fullName}: ${firstLine(test.result().errors?.[0]?.message ?? '')}`,
      ),
    ],
  };
}

function firstLine(text: string): string {
  return stripVTControlCharacters(text).split('\n', 1)[0] ?? '';
}

export function sum(outcomes: readonly Counts[]): Counts {
  return outcomes.reduce<Counts>(
    (total, { passed, failed, skipped }) => ({
      passed: total.passed + passed,
      failed: total.failed + failed,
      skipped: total.skipped + skipped,
    }),
    { passed: 0, failed: 0, skipped: 0 },
  );
}

const HEAD = ['suite', 'files', 'passed', 'failed', 'skipped', 'seconds', 'budget'];

function row(name: string, files: readonly FileOutcome[], budget: number): string {
  const { passed, failed, skipped } = sum(files);
  const seconds = files.reduce((total, file) => total + file.seconds, 0);
  const cells = [files.length, passed, failed, skipped, seconds.toFixed(1), budget];
  return `${line(name, cells)}${seconds > budget ? '  over budget' : ''}`;
}

function line(name: string, cells: readonly (string | number)[]): string {
  return [name.padEnd(12), ...cells.map((cell) => String(cell).padStart(8))].join('');
}

/** A line for each suite that ran. Its budget is for all its files, so a filtered run is rarely over it. */
function timings(outcomes: readonly FileOutcome[]): string[] {
  const files = Map.groupBy(outcomes, ({ path }) => suiteOf(path));
  const ran = SUITES.filter((suite) => files.has(suite));
  const [name = '', ...cells] = HEAD;
  return [
    line(name, cells),
    ...ran.map((suite) => row(suite.name, files.get(suite) ?? [], suite.budget)),
    row(
      'all',
      outcomes,
      ran.reduce((total, { budget }) => total + budget, 0),
    ),
  ];
}

/** Lists the missing components. Empty if none is missing, or if all are required: tests then fail instead. */
function leftOut(probes: Probes): string[] {
  const absent = Object.entries(probes).filter(([, reason]) => reason !== null);
  if (absent.length === 0 || allRequired()) return [];
  return [
    'Left out: tests of these missing components (test/setup-debian.sh installs them on Debian):',
    ...absent.map(([component, reason]) => `  ${component.padEnd(12)}${reason}`),
    '',
  ];
}

/** Names what failed, so that the end of a long run's output is enough to know it. */
function failures(outcomes: readonly FileOutcome[]): string[] {
  const listed = (title: string, linesOf: (file: FileOutcome) => readonly string[] | undefined) => {
    const lines = outcomes.flatMap((file) => (linesOf(file) ?? []).map((text) => `  ${file.path} > ${text}`));
    return lines.length === 0 ? [] : [title, ...lines, ''];
  };
  return [
    ...listed('Passed at the second try only:', ({ retried }) => retried),
    ...listed('Failed:', (file) => file.failures),
  ];
}

/** `N passed, N failed`: the last line of a run, for programs. The table above it counts the skipped tests. */
export function lastLine({ passed, failed }: Counts): string {
  return `${passed} passed, ${failed} failed`;
}

/** The end of a run's output. Seconds are summed over files, which run in parallel. */
export function renderReport(outcomes: readonly FileOutcome[], probes: Probes, wallSeconds: number): string {
  return [
    '',
    ...timings(outcomes),
    `${wallSeconds.toFixed(1)} s of wall time; the seconds above are summed over files.`,
    '',
    ...leftOut(probes),
    ...failures(outcomes),
    lastLine(sum(outcomes)),
  ].join('\n');
}
