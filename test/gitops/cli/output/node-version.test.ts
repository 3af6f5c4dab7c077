import { expect, test } from 'vitest';
import { nodeProblem } from '../../../../gitops/cli/output/node-version.ts';

test.each([
  ['18.20.8', true],
  ['20.20.2', true],
  ['22.9.0', true],
  ['22.21.9', true],
  ['22.22.0', false],
  ['22.23.1', false],
  ['24.0.0', false],
  ['100.0.0', false],
])('Node %s is too old: %s', (version, isTooOld) => {
  const problem = nodeProblem(version, '>=22.22.0');
  expect(problem !== null).toBe(isTooOld);
  if (isTooOld)
    expect(problem).toMatch(
      /^Node [\d.]+ is too old: tagyard needs Node 22\.22\.0 or newer; install it[^\n]*$/,
    );
});

test('this Node is new enough for the range of package.json', () => {
  expect(nodeProblem()).toBeNull();
});
