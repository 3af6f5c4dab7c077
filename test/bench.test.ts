import { describe, expect, test } from 'vitest';
import { createRecorder, renderFigure, summarise } from './bench/bench.ts';
import { processTree, residentMiB } from './bench/memory.ts';

describe('the bench', () => {
  test.each([
    [[3, 1, 2], { median: 2, min: 1, max: 3, samples: 3 }],
    [[4, 1, 2, 3], { median: 2.5, min: 1, max: 4, samples: 4 }],
    [[7], { median: 7, min: 7, max: 7, samples: 1 }],
  ])('summarises %o', (samples, expected) => {
    expect(summarise('a', 's', samples)).toMatchObject(expected);
  });

  test('shows a figure as a line, with its spread only if it has several samples', () => {
    const [one, three] = [summarise('start', 's', [1.23456]), summarise('start', 's', [1, 2, 412.4])];
    expect(renderFigure(one).replaceAll(/\s+/g, ' ')).toBe('start 1.23 s');
    expect(renderFigure(three).replaceAll(/\s+/g, ' ')).toBe('start 2.00 s (1.00 to 412, 3 samples)');
  });

  test('takes the demanded number of samples in order, and names a figure that failed', async () => {
    const lines: string[] = [];
    const { bench, figures } = createRecorder((line) => lines.push(line));
    let next = 0;
    await bench('counting', { unit: 'n', times: 3, run: () => ++next });
    const cause = new Error('no');
    await expect(bench('broken', { unit: 's', run: () => Promise.reject(cause) })).rejects.toMatchObject({
      message: 'bench "broken" failed',
      cause,
    });
    expect(figures).toMatchObject([{ name: 'counting', median: 2, samples: 3 }]);
    expect(lines).toHaveLength(1);
  });

  test('finds a process and its descendants, and their memory', () => {
    expect(processTree(process.ppid)).toEqual(expect.arrayContaining([process.ppid, process.pid]));
    expect(processTree(process.pid)).not.toContain(process.ppid);
    expect(residentMiB(process.pid)).toBeGreaterThan(10);
  });
});
