import { expect, test } from 'vitest';
import { splitDrift } from '../../../gitops/pass/drift.ts';
import { Inventory } from '../../../gitops/pass/inventory.ts';
import { change, resource } from '../../support/gitops/plans.ts';

test('a change that Tagyard itself causes isn’t drift, although the same content was applied before', () => {
  const resources = [{ target: 'kv', key: 'a', state: 'applied', hash: '0123456789abcdef' } as const];
  const inventory = new Inventory([{ site: 'shop', resources }]);
  const update = change('shop', 'a', { op: 'update' });
  const desired = { ...resource('shop', 'a'), hash: '0123456789abcdef' };
  const observed = {
    target: 'kv',
    key: 'a',
    hash: null,
    owner: { kind: 'ours', site: 'shop', host: 'tag-1' },
    ref: null,
  } as const;
  expect(inventory.wasApplied({ ...update, desired, observed })).toBe(true);
  expect(inventory.wasApplied({ ...update, desired, observed: { ...observed, outdated: true } })).toBe(false);
});

test.each([
  ['a change of the manifest, whatever the mode', 'ignore', 'update', false, false, 'made'],
  ['drift', undefined, 'update', true, false, 'made'],
  ['drift to enforce', 'enforce', 'create', true, false, 'made'],
  ['drift in a repair loop', 'enforce', 'update', true, true, 'repair_loop'],
  ['drift to report', 'warn', 'update', true, false, 'warn'],
  ['drift to report, in a repair loop', 'warn', 'update', true, true, 'warn'],
  ['drift to ignore', 'ignore', 'update', true, false, 'dropped'],
  ['a delete, which is never drift', 'ignore', 'delete', true, true, 'made'],
] as const)('%s (mode %s): $5', (_what, mode, op, isDrift, isRepairLoop, expected) => {
  const one = change('shop', 'a', { op });
  const split = splitDrift([one], {
    modes: mode === undefined ? {} : { kv: mode },
    isDrift: () => isDrift,
    isRepairLoop: () => isRepairLoop,
  });
  expect(split).toEqual({
    changes: expected === 'made' ? [one] : [],
    drifted: expected === 'made' && isDrift && op !== 'delete' ? [one] : [],
    unrepaired: expected === 'warn' || expected === 'repair_loop' ? [{ change: one, why: expected }] : [],
  });
});
