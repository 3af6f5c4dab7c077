import { describe, expect, test } from 'vitest';
import type { RolloutOutcome } from '../../../gitops/cli/image-site.ts';
import { REASONS, type Reason } from '../../../gitops/report/report.ts';
import { imageCommit, isChangeable, nextBatch, watchedCondition } from '../../../gitops/report/rollout.ts';

const SITES = ['a', 'b', 'c', 'd', 'e'];
type State = RolloutOutcome['state'];

describe('nextBatch', () => {
  test.each<[string, readonly State[], readonly string[]]>([
    ['starts with one site', [], ['a']],
    ['continues with several after the first one has the image', ['swapped'], ['b', 'c']],
    ['continues with several after the first one already had the image', ['already'], ['b', 'c']],
    ['takes one site alone after skipped ones', ['skipped', 'skipped'], ['c']],
    ['continues with several after skipped ones and the first swap', ['skipped', 'swapped'], ['c', 'd']],
    ['stops after the first site was reverted', ['reverted'], []],
    ['stops after the first site failed', ['failed'], []],
    ['stops after the first tried site was reverted', ['skipped', 'reverted'], []],
    ['continues after one failure', ['swapped', 'reverted', 'swapped'], ['d', 'e']],
    ['stops after more than one failure', ['swapped', 'reverted', 'failed'], []],
    ['takes the last site alone', ['swapped', 'swapped', 'swapped', 'skipped'], ['e']],
    ['is complete after the last site', ['swapped', 'swapped', 'swapped', 'swapped', 'already'], []],
  ])('%s', (_what, states, expected) => {
    const outcomes = new Map(states.map((state, number) => [SITES[number] ?? '', { state, detail: '' }]));
    expect(nextBatch({ sites: SITES, outcomes, waves: [1, 2], maxFailures: 1 })).toEqual(expected);
  });

  test.each<[number, readonly string[]]>([
    [0, ['a']],
    [1, ['b', 'c']],
    [2, ['c']],
    [3, ['d', 'e']],
  ])('after %i sites, returns the rest of the current wave', (tried, expected) => {
    const outcomes = new Map(SITES.slice(0, tried).map((site) => [site, { state: 'swapped' }]));
    expect(nextBatch({ sites: SITES, outcomes, waves: [1, 2, 9], maxFailures: 0 })).toEqual(expected);
  });

  test('stops after the first site failed, however many failures are allowed', () => {
    const outcomes = new Map([['a', { state: 'reverted', detail: '' } as const]]);
    expect(nextBatch({ sites: SITES, outcomes, waves: [1, 2], maxFailures: 9 })).toEqual([]);
  });
});

const image = { revision: 'r2', subject: 'Change the image of shop' };
const other = { revision: 'r1', subject: 'Rename shop' };
describe.each([
  ['no commit', [], null],
  ['an image change as its newest commit', [image, other], 'r2'],
  ['an older image change', [other, image], null],
  ['the image change of another site', [{ ...image, subject: 'Change the image of shop-2' }], null],
])('a site with %s', (_what, history, revision) => {
  test('names the commit to revert, if there is one', () => {
    expect(imageCommit({ site: 'shop', history })).toBe(revision);
  });

  test('can be changed if it is ready, or if its newest commit changed its image', () => {
    expect(isChangeable({ site: 'shop', history, ready: true })).toBe(true);
    expect(isChangeable({ site: 'shop', history, ready: false })).toBe(revision !== null);
  });
});

test.each(Object.keys(REASONS) as Reason[])(
  'whether a watched site has failed, is ready or is pending depends on its reason: %s',
  (reason) => {
    const ready = reason === 'Ready';
    const failed = reason === 'Failed' || reason === 'Retrying';
    expect(watchedCondition({ ready, reason })).toBe(failed ? 'failed' : ready ? 'ready' : 'pending');
  },
);
