import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestModule } from 'vitest/node';
import type { FileOutcome } from '../report.ts';

/** What the process of a project tells the runner: the outcome of a file, or an error outside all tests. */
export type Message = { readonly file: FileOutcome } | { readonly stray: string };

const tell = (message: Message) => void process.send?.(message);

/** Tells the runner each file's outcome as soon as it is known. Vitest's own reporters write for people. */
export default class RunnerReporter implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    tell({ file: readModule(module) });
  }

  onTestRunEnd(_: readonly TestModule[], errors: readonly { readonly message: string }[]): void {
    for (const { message } of errors) tell({ stray: firstLine(message) });
  }
}

/** A file that fails outside its tests (on import, in a hook) has no failed test, so it counts as one failure. */
function readModule(module: TestModule): FileOutcome {
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
      // A hook that failed: the tests of its group are then counted as skipped.
      ...[...module.children.allSuites()].flatMap((suite) =>
        suite.errors().map(({ message }) => `${suite.fullName}: ${firstLine(message)}`),
      ),
      ...[...module.children.allTests('failed')].map(
        (test) => `${test.fullName}: ${firstLine(test.result().errors?.[0]?.message ?? '')}`,
      ),
    ],
  };
}

function firstLine(text: string): string {
  return stripVTControlCharacters(text).split('\n', 1)[0] ?? '';
}
