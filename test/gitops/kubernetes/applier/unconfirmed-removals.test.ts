import { expect, test } from 'vitest';
import { UnconfirmedRemovals } from '../../../../gitops/kubernetes/applier/state/unconfirmed-removals.ts';
import { testClock } from '../../../support/test-clock.ts';

const secret = (name: string) => ({
  target: 'objects' as const,
  key: `shops/Secret/${name}`,
  owner: { kind: 'ours', site: 'acme', host: 'host' } as const,
  hash: null,
  ref: { address: { kind: 'Secret', namespace: 'shops', name } as const, uid: name, client: null },
});

test('a Secret is shown from the deletion of its record to the end of its removal', () => {
  const removals = new UnconfirmedRemovals(testClock());
  const [one, two] = [secret('one'), secret('two')];
  removals.begin(one);
  removals.begin(two);
  expect(removals.without([two])).toEqual([one]);
  expect(removals.without([])).toEqual([one, two]);
  removals.end('shops/one');
  expect(removals.without([])).toEqual([two]);
  expect([removals.has('shops/one'), removals.has('shops/two')]).toEqual([false, true]);
});

test('a removal that is begun again and again counts as ended an hour after the first time', () => {
  const clock = testClock();
  const removals = new UnconfirmedRemovals(clock);
  removals.begin(secret('one'));
  clock.advance(59 * 60_000);
  removals.begin(secret('one'));
  expect(removals.without([])).toHaveLength(1);
  clock.advance(60_000);
  expect(removals.without([])).toEqual([]);
});
