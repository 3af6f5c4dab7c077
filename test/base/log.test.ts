import { expect, test } from 'vitest';
import { warner } from '../../base/log.ts';

test('a failure is passed on once, and again after another failure or a success', () => {
  const passed: string[] = [];
  const report = warner((message) => passed.push(message));
  for (const error of [null, new Error('full'), new Error('full'), 'denied', new Error('full'), null]) {
    report(error);
  }
  report(new Error('full'));
  expect(passed).toEqual(['full', 'denied', 'full', 'full']);
});
