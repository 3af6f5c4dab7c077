import { expect, test } from 'vitest';
import { conditionsOf, statusOf } from '../../../gitops/report/quotas.ts';

const site = (state: string, target = 'dns') => ({ resources: [{ target, state }] });

test.each([
  ['79 %', 158, 200, 3, [], 'ok'],
  ['80 %', 160, 200, 3, [], 'quota_near'],
  ['room for one more site', 197, 200, 3, [], 'quota_near'],
  ['less room than a site needs', 198, 200, 3, [], 'quota_reached'],
  ['more than is allowed now', 300, 200, 1, [], 'quota_reached'],
  ['room that sites wait for', 194, 200, 3, [site('pending'), site('failed')], 'quota_reached'],
  ['sites that have all they need', 194, 200, 3, [site('applied'), site('drifted')], 'quota_near'],
  ['sites that wait for something else', 194, 200, 3, [site('pending', 'containers')], 'quota_near'],
  ['all used, and a site that needs nothing', 1, 1, 0, [], 'quota_near'],
  ['a limit that is unknown', 5_000, null, 3, [], 'unknown'],
] as const)('%s: %i of %s', (_what, used, limit, perSite, sites, state) => {
  const status = statusOf({ name: 'dns_records', used, limit, perSite }, [...sites]);
  expect(status.state).toBe(state);
  const isFine = state === 'ok' || state === 'unknown';
  expect(status.fix).toEqual(isFine ? null : expect.stringContaining('DNS_RECORD_MODE=wildcard'));
  expect(conditionsOf([status]).map(({ condition }) => condition)).toEqual(isFine ? [] : [state]);
});

test.each([
  ['ok', 1, 200, /^Delete what is unused/],
  ['quota_near', 160, 200, /DNS_RECORD_MODE=wildcard.* Delete what is unused/],
  ['unknown', 1, null, /^Delete what is unused/],
] as const)(
  'things that serve no site are named, with what to do, in the state %s',
  (state, used, limit, fix) => {
    const unused = ['*.example.net (Tagyard instance test on host tag-2)'];
    expect(statusOf({ name: 'dns_records', used, limit, perSite: 1, unused }, [])).toMatchObject({
      state,
      unused,
      message: expect.stringMatching(/; unused: \*\.example\.net \(.*tag-2\)$/),
      fix: expect.stringMatching(fix),
    });
  },
);
