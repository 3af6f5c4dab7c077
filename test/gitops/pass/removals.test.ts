import { expect, test } from 'vitest';
import { findRemovals } from '../../../gitops/pass/removals.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import type { Absence } from '../../../sites/repo/absences.ts';
import { SitesRepoError } from '../../../sites/repo/errors.ts';
import { desiredState } from '../../support/gitops/plans.ts';
import { manifestInput } from '../../support/manifest.ts';

const onOtherHosts = new Map([
  ['moved', { host: 'tag-2', state: 'present', protect: true }],
  ['ended-there', { host: 'tag-2', state: 'absent', protect: false }],
] as const);
const last = (extra = {}) => manifestSchema.parse(manifestInput('acme', 0, extra));
const proven = { isProven: true, detail: '' };
const found: Record<string, Absence> = {
  deleted: { ...proven, last: last() },
  protected: { ...proven, last: last({ protect: true }) },
  tombstone: { ...proven, last: last({ protect: true, state: 'absent' }) },
  'never-readable': { ...proven, last: null },
  elsewhere: { isProven: false, detail: 'it is elsewhere', last: last() },
};

test.each([
  ['moved', { confirmed: true, protect: true, to: 'tag-2' }],
  ['ended-there', { confirmed: true, protect: false }],
  ['deleted', { confirmed: true, protect: false }],
  ['protected', { confirmed: true, protect: true }],
  ['tombstone', { confirmed: true, protect: false }],
  ['never-readable', { confirmed: true, protect: false }],
  ['elsewhere', { confirmed: false, protect: false, detail: 'it is elsewhere' }],
])('finds out why the site is missing: %s', async (site, expected) => {
  const reads: unknown[] = [];
  const repo = {
    absences: async (sites: readonly string[], revision: string) => {
      reads.push([sites, revision]);
      return new Map(sites.flatMap((name) => (found[name] ? [[name, found[name]] as const] : [])));
    },
  };
  const removals = await findRemovals([site], desiredState([], { onOtherHosts }), repo);
  expect([...removals]).toEqual([[site, expected]]);
  // Git isn't read where the file itself names the other host.
  expect(reads).toEqual(onOtherHosts.has(site as 'moved') ? [] : [[[site], 'r1']]);
});

test('knows nothing of a site, not even whether it is protected, if the history can’t be read', async () => {
  const repo = {
    absences: async () => {
      throw new SitesRepoError('bad object');
    },
  };
  const removals = await findRemovals(['acme', 'moved'], desiredState([], { onOtherHosts }), repo);
  expect(removals.get('acme')).toEqual({ confirmed: false, protect: false, unreadable: 'bad object' });
  expect(removals.get('moved')).toMatchObject({ confirmed: true });
});

test('reads git once for all sites', async () => {
  const reads: number[] = [];
  const repo = {
    async absences(sites: readonly string[]) {
      reads.push(sites.length);
      return new Map<string, Absence>();
    },
  };
  const sites = Array.from({ length: 30 }, (_, number) => `site-${number}`);
  const removals = await findRemovals(sites, desiredState([]), repo);
  expect([...removals.values()].every(({ confirmed }) => !confirmed)).toBe(true);
  expect(reads).toEqual([30]);
});
