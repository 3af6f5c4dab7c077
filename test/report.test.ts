import { describe, expect, test } from 'vitest';
import { type FileOutcome, group, lastLine, renderReport } from './support/report.ts';

const everything = {
  nginx: null,
  docker: null,
  postgresql: null,
  knot: null,
  pebble: null,
  chromium: null,
  reference: null,
};
const file = (path: string, counts: Partial<FileOutcome>): FileOutcome => ({
  path,
  passed: 0,
  failed: 0,
  skipped: 0,
  seconds: 1,
  ...counts,
});

describe('the end of a test run', () => {
  test.each([
    ['test/architecture.test.ts', 'check'],
    ['test/edge/router.test.ts', 'edge'],
    ['test/gitops/appliers/dns/plan.test.ts', 'gitops'],
    ['test/integration/flow.test.ts', 'integration'],
  ])('%s belongs to %s', (path, expected) => {
    expect(group(path)).toBe(expected);
  });

  test.each([
    [{ passed: 3, failed: 0, skipped: 0 }, '3 passed, 0 failed'],
    [{ passed: 3, failed: 1, skipped: 2 }, '3 passed, 1 failed'],
  ])('the last line of %o', (counts, expected) => {
    expect(lastLine(counts)).toBe(expected);
  });

  test('sums each part, names what is missing, and ends with the counts alone', () => {
    const lines = renderReport(
      [
        file('test/faults/kill.test.ts', { passed: 1, seconds: 2.25 }),
        file('test/edge/a.test.ts', { passed: 2, failed: 1 }),
        file('test/edge/b.test.ts', { passed: 4, skipped: 1 }),
      ],
      { ...everything, knot: 'knotd is not installed' },
      3,
    ).split('\n');
    expect(lines.map((line) => line.split(/\s+/).join(' '))).toEqual([
      '',
      'part files passed failed skipped seconds',
      'edge 2 6 1 1 2.0',
      'faults 1 1 0 0 2.3',
      'all 3 7 1 1 4.3',
      '3.0 s by the clock; seconds above are summed over files.',
      '',
      'Left out, for want of a component (test/setup-debian.sh installs them on Debian):',
      ' knot knotd is not installed',
      '',
      '7 passed, 1 failed',
    ]);
  });
});
