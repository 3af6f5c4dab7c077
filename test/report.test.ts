import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type FileOutcome, lastLine, renderReport } from './support/report.ts';

const file = (path: string, counts: Partial<FileOutcome>): FileOutcome => ({
  path,
  passed: 0,
  failed: 0,
  skipped: 0,
  seconds: 1,
  failures: [],
  ...counts,
});
const squeezed = (report: string) => report.split('\n').map((line) => line.split(/\s+/).join(' '));

describe('the end of a test run', () => {
  beforeEach(() => void vi.stubEnv('TAGYARD_REQUIRE_ALL', ''));
  afterEach(() => void vi.unstubAllEnvs());

  test.each([
    [{ passed: 3, failed: 0, skipped: 0 }, '3 passed, 0 failed'],
    [{ passed: 3, failed: 1, skipped: 2 }, '3 passed, 1 failed'],
  ])('has the last line $1 for the counts %o', (counts, expected) => {
    expect(lastLine(counts)).toBe(expected);
  });

  test('shows each suite’s sums and budget, names what is missing, and ends with the counts alone', () => {
    const report = renderReport(
      [
        file('test/faults/cloudflare.test.ts', { passed: 1, seconds: 2_002.25 }),
        file('test/edge/a.test.ts', { passed: 2, failed: 1 }),
        file('test/edge/b.test.ts', { passed: 4, skipped: 1 }),
      ],
      { nginx: null, knot: 'knotd is not installed' },
      3,
    );
    expect(squeezed(report)).toEqual([
      '',
      'suite files passed failed skipped seconds budget',
      expect.stringMatching(/^edge 2 6 1 1 2\.0 \d+$/),
      expect.stringMatching(/^outages 1 1 0 0 2002\.3 \d+ over budget$/),
      expect.stringMatching(/^all 3 7 1 1 2004\.3 \d+ over budget$/),
      '3.0 s of wall time; the seconds above are summed over files.',
      '',
      'Left out: tests of these missing components (test/setup-debian.sh installs them on Debian):',
      ' knot knotd is not installed',
      '',
      '7 passed, 1 failed',
    ]);
  });

  test('names what failed, and what passed at the second try only, before the counts', () => {
    const report = renderReport(
      [
        file('test/edge/a.test.ts', { failed: 1, failures: ['a part > does it: expected 1 to be 2'] }),
        file('test/edge/b.test.ts', { passed: 1, retried: ['waits: timed out'] }),
      ],
      {},
      1,
    );
    expect(report.split('\n').slice(-7)).toEqual([
      'Passed at the second try only:',
      '  test/edge/b.test.ts > waits: timed out',
      '',
      'Failed:',
      '  test/edge/a.test.ts > a part > does it: expected 1 to be 2',
      '',
      '1 passed, 1 failed',
    ]);
  });

  test.each([
    ['every needed component is here', { nginx: null }, ''],
    ['no component was needed', {}, ''],
    ['a missing component fails the run', { knot: 'knotd is not installed' }, '1'],
  ])('names nothing as left out where %s', (_case, probes, required) => {
    vi.stubEnv('TAGYARD_REQUIRE_ALL', required);
    const report = renderReport([file('test/edge/a.test.ts', { passed: 1 })], probes, 1);
    expect(report).not.toMatch(/left out/i);
    expect(report.split('\n').at(-1)).toBe('1 passed, 0 failed');
  });
});
