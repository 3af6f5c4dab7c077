import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { filesOf, type Project } from './test/suites.ts';
import { COMPILE_CACHE } from './test/support/compile-cache.ts';

// For every process that a test starts.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

const project = (name: Project, settings: object) => ({
  test: { name, include: filesOf(name), ...settings },
});

/** Suites that start real components: long timeouts, and no two files of a project at once. */
const REAL = { testTimeout: 360_000, hookTimeout: 360_000, fileParallelism: false };

/** A timeout only ends a test that hangs. Four projects run beside each other, so a test can wait long for a core. */
const UNIT = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // The default of one second would measure the machine, not the code.
  expect: { poll: { timeout: 60_000 } },
};

/** The order of `test/suites.ts`, whatever earlier runs took. */
class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project: { config } }: TestSpecification) =>
      config.include.findIndex((path) => moduleId.endsWith(`/${path}`));
    return files.toSorted((a, b) =>
      a.project === b.project ? place(a) - place(b) : a.project.name < b.project.name ? 1 : -1,
    );
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: InOrder },
    projects: [
      project('unit', { ...UNIT, maxWorkers: 2, isolate: false }),
      // In one process: loading the code again for each file took a third of the time.
      project('daemons', { ...UNIT, fileParallelism: false, isolate: false }),
      project('databases', REAL),
      project('cluster', REAL),
      project('services', REAL),
      project('containers', REAL),
      project('faults', REAL),
      project('fuzz', REAL),
    ],
  },
});
