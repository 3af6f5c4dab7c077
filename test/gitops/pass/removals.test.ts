import { expect, test } from 'vitest';
import { formatManifest } from '../../../gitops/manifest/load.ts';
import { findRemovals } from '../../../gitops/pass/removals.ts';
import { desiredState } from '../../support/gitops/plans.ts';
import { manifestInput } from '../../support/manifest.ts';

const onOtherHosts = new Map([
  ['moved', { host: 'tag-2', state: 'present', protect: true }],
  ['ended-there', { host: 'tag-2', state: 'absent', protect: false }],
] as const);
const files: Record<string, string> = {
  deleted: formatManifest(manifestInput('deleted')),
  protected: formatManifest(manifestInput('protected', 1, { protect: true })),
  tombstone: formatManifest(manifestInput('tombstone', 2, { protect: true, state: 'absent' })),
  broken: 'site: [',
};

test.each([
  ['moved', { confirmed: true, protect: true, to: 'tag-2' }],
  ['ended-there', { confirmed: true, protect: false }],
  ['deleted', { confirmed: true, protect: false }],
  ['protected', { confirmed: true, protect: true }],
  ['tombstone', { confirmed: true, protect: false }],
  ['broken', { confirmed: true, protect: false }],
  ['unreadable', { confirmed: true, protect: false }],
  ['never-there', { confirmed: false, protect: false }],
])('finds out why the site is missing: %s', async (site, expected) => {
  const reads: unknown[] = [];
  const repo = {
    history: async (name: string, limit: number, revision: string) => {
      reads.push([name, limit, revision]);
      const entry = { revision: 'r0', at: '', author: '', email: '', subject: '', trailers: {} };
      return name === 'never-there' ? [] : [entry];
    },
    readSite: async (revision: string, name: string) => {
      expect(revision).toBe('r0^');
      const text = files[name];
      if (text === undefined) throw new Error('can’t be read');
      return { site: name, path: `${name}.yaml`, blob: 'b', text };
    },
  };
  const found = await findRemovals([site], desiredState([], { onOtherHosts }), repo as never);
  expect([...found]).toEqual([[site, expected]]);
  // Git isn't read where the file itself names the other host.
  expect(reads).toEqual(onOtherHosts.has(site as 'moved') ? [] : [[site, 1, 'r1']]);
});

test('reads the history of eight sites at a time', async () => {
  let active = 0;
  let most = 0;
  const repo = {
    async history() {
      active += 1;
      most = Math.max(most, active);
      await new Promise(setImmediate);
      active -= 1;
      return [];
    },
    readSite: async () => null,
  };
  const sites = Array.from({ length: 30 }, (_, number) => `site-${number}`);
  expect([...(await findRemovals(sites, desiredState([]), repo)).keys()]).toEqual(sites);
  expect(most).toBe(8);
});
