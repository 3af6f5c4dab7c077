import type { TestModule } from 'vitest/node';
import type { Probes } from './components.ts';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** One test file as the runner saw it; `path` is relative to the project's root. */
export interface FileOutcome extends Counts {
  readonly path: string;
  readonly seconds: number;
}

/**
 * Reads one file's outcome from the runner. A file that breaks outside its tests (on import, in a hook) has no failed
 * test of its own and counts as one failure, so that it can't pass unseen.
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
  };
}

/** The folder under `test/` that a file belongs to; files right in it check the tree as a whole. */
export function group(path: string): string {
  const [, folder, rest] = path.split('/');
  return folder === undefined || rest === undefined ? 'check' : folder;
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

/** The order in which groups are listed; one that isn't named here comes last. */
const GROUPS = [
  'check',
  'plugins',
  'edge',
  'gitops',
  'management',
  'sites',
  'integration',
  'browser',
  'faults',
];

const rank = (name: string) => (GROUPS.indexOf(name) + GROUPS.length + 1) % (GROUPS.length + 1);

function timings(outcomes: readonly FileOutcome[]): string[] {
  const row = (name: string, files: readonly FileOutcome[]) => {
    const { passed, failed, skipped } = sum(files);
    const seconds = files.reduce((total, file) => total + file.seconds, 0).toFixed(1);
    return [name, files.length, passed, failed, skipped, seconds];
  };
  const groups = Map.groupBy(outcomes, ({ path }) => group(path));
  const rows = [...groups].sort(([a], [b]) => rank(a) - rank(b)).map(([name, files]) => row(name, files));
  const head = ['part', 'files', 'passed', 'failed', 'skipped', 'seconds'];
  return [head, ...rows, row('all', outcomes)].map(([name, ...cells]) =>
    [String(name).padEnd(12), ...cells.map((cell) => String(cell).padStart(8))].join(''),
  );
}

function leftOut(probes: Probes): string[] {
  const absent = Object.entries(probes).filter(([, reason]) => reason !== null);
  if (absent.length === 0) return ['Nothing was left out: every component is here.'];
  return [
    'Left out, for want of a component (test/setup-debian.sh installs them on Debian):',
    ...absent.map(([component, reason]) => `  ${component.padEnd(12)}${reason}`),
  ];
}

/** `N passed, N failed`: the last line of a run, read by machines. What was skipped stands in the table above it. */
export function lastLine({ passed, failed }: Counts): string {
  return `${passed} passed, ${failed} failed`;
}

/** What a run ends with. Seconds are summed over files, so files that ran side by side add up to more than the clock. */
export function renderReport(outcomes: readonly FileOutcome[], probes: Probes, wallSeconds: number): string {
  return [
    '',
    ...timings(outcomes),
    `${wallSeconds.toFixed(1)} s by the clock; seconds above are summed over files.`,
    '',
    ...leftOut(probes),
    '',
    lastLine(sum(outcomes)),
  ].join('\n');
}
