import { expect, test } from 'vitest';
import { passScope, type ScopeReasons } from '../../../gitops/loop/reconciler.ts';
import { desiredSite, desiredState } from '../../support/gitops/plans.ts';

const NONE: ScopeReasons = {
  isFirstPass: false,
  isRequested: false,
  isIntervalOver: false,
  isObservationDue: false,
  isHistoryRewritten: false,
  isStateLost: false,
  hasGuardedChanges: false,
  sites: new Set(),
};
const desired = desiredState([desiredSite('one'), desiredSite('two')]);

test.each([
  ['no reason', {}, []],
  ['a site of the desired state', { sites: new Set(['one']) }, ['one']],
  [
    'a site that git no longer has (a full pass must confirm that)',
    { sites: new Set(['one', 'gone']) },
    null,
  ],
  ...Object.keys(NONE)
    .filter((reason) => reason !== 'sites')
    .map((reason) => [reason, { [reason]: true, sites: new Set(['one']) }, null] as const),
] as const)('a pass for %s covers $2 (null: everything)', (_why, reasons, expected) => {
  const scope = passScope({ ...NONE, ...reasons }, desired);
  expect(scope === null ? null : [...scope]).toEqual(expected);
});
