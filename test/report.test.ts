import { describe, expect, test } from 'vitest';
import { renderReport } from './support/report.ts';

type Outcome = Parameters<typeof renderReport>[0]['outcomes'][number];

const file = (project: string, path: string, counts: Partial<Outcome>): Outcome => ({
  project,
  path,
  passed: 0,
  failed: 0,
  skipped: 0,
  seconds: 1,
  failures: [],
  ...counts,
});
const report = (parts: Partial<Parameters<typeof renderReport>[0]>) =>
  renderReport({ outcomes: [], leftOut: [], later: [], seconds: 3, logs: 'logs', ...parts });
const squeezed = (text: string) => text.split('\n').map((line) => line.split(/\s+/).join(' '));

describe('the end of a test run', () => {
  test('shows each project’s sums, what was left out and why, and ends with the counts alone', () => {
    const text = report({
      outcomes: [
        file('unit', 'test/edge/a.test.ts', { passed: 2, failed: 1 }),
        file('unit', 'test/edge/b.test.ts', { passed: 4, skipped: 1 }),
        file('faults', 'test/faults/c.test.ts', { passed: 1, seconds: 2002.4 }),
      ],
      leftOut: [{ component: 'knot', reason: 'knotd is not installed', files: 2 }],
      later: [{ reason: 'Chromium', files: 1 }],
    });
    expect(squeezed(text)).toEqual([
      '',
      ' files passed failed skipped seconds',
      'unit 2 6 1 1 2',
      'faults 1 1 0 0 2002',
      'all 3 7 1 1 2004',
      '3 s in all; the seconds above are summed over files, which run beside each other.',
      '',
      expect.stringContaining('test/setup-debian.sh'),
      ' knot 2 files: knotd is not installed',
      '',
      expect.stringContaining('npm run test:all'),
      ' 1 file: Chromium',
      '',
      '7 passed, 1 failed',
    ]);
  });

  test('names what failed, and what passed at the second try only, before the counts', () => {
    const text = report({
      outcomes: [
        file('unit', 'test/edge/a.test.ts', {
          failed: 1,
          failures: ['a part > does it: expected 1 to be 2'],
        }),
        file('unit', 'test/edge/b.test.ts', { passed: 1, retried: ['waits: timed out'] }),
      ],
    });
    expect(text.split('\n').slice(-7)).toEqual([
      'Passed at the second try only:',
      '  test/edge/b.test.ts > waits: timed out',
      '',
      'Failed (logs/<project>.log has diffs and stacks):',
      '  test/edge/a.test.ts > a part > does it: expected 1 to be 2',
      '',
      '1 passed, 1 failed',
    ]);
  });

  test('names nothing as left out where nothing was', () => {
    const text = report({ outcomes: [file('unit', 'test/edge/a.test.ts', { passed: 1 })] });
    expect(text).not.toMatch(/left out|test:all/i);
    expect(text.split('\n').at(-1)).toBe('1 passed, 0 failed');
  });
});
