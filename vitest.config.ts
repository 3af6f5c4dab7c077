import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PROJECTS } from './test/projects.ts';
import { COMPILE_CACHE } from './test/support/compile-cache.ts';

// For every process that a test starts.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

/** By name, however long earlier runs took. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
  }
}

/** A timeout only ends a test that hangs. A test can wait long for a core. */
const timeouts = (ms: number) => ({ testTimeout: ms, hookTimeout: ms });

export default defineConfig({
  test: {
    sequence: { sequencer: ByName },
    projects: Object.entries(PROJECTS).map(([name, { include, exclude, later }]) => ({
      test: {
        name,
        include: [...include],
        exclude: [...exclude],
        setupFiles: ['test/support/declared-programs.ts'],
        // A worker runs all its files in one process: loading the code and bundling the edge again would take two
        // seconds of CPU time for each file.
        isolate: name === 'fuzz',
        ...(later === null || name === 'slow'
          ? // The default of one second would measure the machine, not the code.
            { ...timeouts(120_000), expect: { poll: { timeout: 60_000 } } }
          : timeouts(360_000)),
        ...(later === null ? {} : { fileParallelism: false }),
      },
    })),
  },
});
