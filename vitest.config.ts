import { defineConfig } from 'vitest/config';

/** Pure and single-process suites: the quick local loop (`npm run check`). */
const unit = ['test/*.test.ts', 'test/{edge,plugins,gitops,management,sites}/**/*.test.ts'];

export default defineConfig({
  test: {
    projects: [
      {
        // A poll's default of one second would say something about the machine, not about the code.
        test: {
          name: 'unit',
          include: unit,
          testTimeout: 30_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 20_000 } },
        },
      },
      {
        // Whole instances and real components: one file at a time, because the machine's ports, Docker and
        // two cores are shared, and a starved start-up would look like a failure.
        test: {
          name: 'integration',
          include: ['test/{integration,browser,faults}/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
