import { expect, test } from 'vitest';
import { conditionsOf, statusOf } from '../../../gitops/report/quotas.ts';

const resource = (target: string, missing?: true) => ({ target, ...(missing && { missing }) });
const site = (target: string, missing: number) => ({
  resources: [resource(target), ...Array.from({ length: missing }, () => resource(target, true))],
});
const changing = Array.from({ length: 40 }, () => site('dns', 0));

test.each([
  ['79 %', 158, 200, 3, [], 'ok'],
  ['80 %', 160, 200, 3, [], 'quota_near'],
  ['room for one more site', 197, 200, 3, [], 'quota_near'],
  ['less room than a site needs', 198, 200, 3, [], 'quota_reached'],
  ['more than is allowed now', 300, 200, 1, [], 'quota_reached'],
  ['sites that wait for all of the room', 194, 200, 3, [site('dns', 3), site('dns', 3)], 'quota_reached'],
  [
    'sites that wait for only some of their records',
    194,
    200,
    3,
    [site('dns', 1), site('dns', 2)],
    'quota_near',
  ],
  ['names that a wildcard covers', 197, 200, 1, [site('dns', 3), site('dns', 3)], 'quota_near'],
  ['updates of what is counted already', 120, 200, 3, changing, 'ok'],
  ['sites that wait for something else', 194, 200, 3, [site('containers', 3)], 'quota_near'],
  ['all used, and a site that needs nothing', 1, 1, 0, [], 'quota_near'],
  ['a limit that is unknown', 5_000, null, 3, [], 'unknown'],
] as const)('the state of a quota with %s (%i of %s) is $5', (_what, used, limit, perSite, sites, state) => {
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

test.each([
  ['dns_records', /^Set DNS_RECORD_MODE=wildcard/, /^Delete records, or move the zone to a larger plan\.$/],
  ['worker_routes', /^Set EDGE_ROUTE_MODE=wildcard/, /^Delete routes, or have Cloudflare raise the limit\.$/],
] as const)('a wildcard is advised for %s only where it isn’t the mode', (name, advised, other) => {
  const full = { name, used: 200, limit: 200, perSite: 1 };
  expect(statusOf(full, []).fix).toMatch(advised);
  expect(statusOf({ ...full, mode: 'site' }, []).fix).toMatch(advised);
  expect(statusOf({ ...full, mode: 'wildcard' }, []).fix).toMatch(other);
});
