import { availableParallelism } from 'node:os';
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
/**
 * A worker runs all its files in one process. Loading the code and bundling the edge again would take two seconds of
 * CPU time for each file: in ten files of `daemons`, a third of their CPU time.
 */
const ONE_PROCESS = { isolate: false };

/** A timeout only ends a test that hangs. More projects than cores run at once, so a test can wait long for a core. */
const UNIT = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // The default of one second would measure the machine, not the code.
  expect: { poll: { timeout: 60_000 } },
};

/** The order of `test/suites.ts`, however long earlier runs took. */
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
      // A worker also waits, so one more than there are cores keeps the cores busy.
      project('unit', { ...UNIT, ...ONE_PROCESS, maxWorkers: availableParallelism() + 1 }),
      project('api', { ...UNIT, ...ONE_PROCESS, fileParallelism: false }),
      project('daemons', { ...UNIT, ...ONE_PROCESS, fileParallelism: false }),
      project('databases', { ...REAL, ...ONE_PROCESS }),
      project('cluster', { ...REAL, ...ONE_PROCESS }),
      project('clusterSites', { ...REAL, ...ONE_PROCESS }),
      project('clusterAppliers', { ...REAL, ...ONE_PROCESS }),
      project('gateway', { ...REAL, ...ONE_PROCESS }),
      project('gatewaySites', { ...REAL, ...ONE_PROCESS }),
      project('services', { ...REAL, ...ONE_PROCESS }),
      project('containers', { ...REAL, ...ONE_PROCESS }),
      project('browser', { ...REAL, ...ONE_PROCESS }),
      project('faults', { ...REAL, ...ONE_PROCESS }),
      project('fuzz', REAL),
    ],
  },
});
